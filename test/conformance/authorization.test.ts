import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { HttpRequest } from '../../src/util/http.ts';
import type { Json, Reply } from './api.ts';
import { APPLY, Api, JSON_TYPE } from './api.ts';
import { configMap, configMaps } from './objects.ts';
import { skipBefore } from '../support/skip.ts';

const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const POLICIES = '/apis/admissionregistration.k8s.io/v1';

let api: Api;
let home: string;

before(async () => {
  api = await Api.start();
  home = await api.namespace();
});

after(() => api.close());

/** Creates a user who has the rules in all namespaces. */
async function userWith(...rules: readonly Json[]): Promise<string> {
  const user = `user-${home}-${(number += 1)}`;
  if (rules.length === 0) return user;
  const group = 'rbac.authorization.k8s.io';
  const meta = (kind: string) => ({ apiVersion: `${group}/v1`, kind, metadata: { name: user } });
  await api.made(api.post(`${RBAC}/clusterroles`, { ...meta('ClusterRole'), rules }));
  const subjects = [{ kind: 'User', apiGroup: group, name: user }];
  const roleRef = { apiGroup: group, kind: 'ClusterRole', name: user };
  const binding = { ...meta('ClusterRoleBinding'), roleRef, subjects };
  await api.made(api.post(`${RBAC}/clusterrolebindings`, binding));
  const [{ verbs, apiGroups, resources, resourceNames = [''] }] = rules;
  const review = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: {
      user,
      resourceAttributes: {
        verb: verbs[0],
        group: apiGroups[0],
        resource: resources[0].split('/')[0],
        subresource: resources[0].split('/')[1],
        name: resourceNames[0],
      },
    },
  };
  await api.until('the authorizer knows the binding', async () => {
    const reply = await api.post('/apis/authorization.k8s.io/v1/subjectaccessreviews', review);
    return reply.body.status?.allowed ? reply : undefined;
  });
  return user;
}

let number = 0;

function send(
  user: string,
  method: HttpRequest['method'],
  path: string,
  body?: unknown,
  type: string = JSON_TYPE,
): Promise<Reply> {
  const headers = { 'impersonate-user': user, ...(body !== undefined && { 'content-type': type }) };
  return api.send(method, path, body, headers);
}

test('the attributes of a request are those of its path and its selector', async () => {
  const user = await userWith();
  const maps = '/api/v1/configmaps';
  const selected = (selector: string, more: string = '') =>
    `${maps}?fieldSelector=${encodeURIComponent(selector)}${more}`;
  const inHome = ` in the namespace "${home}"`;
  const atCluster = ' at the cluster scope';
  const cases: [HttpRequest['method'], string, string][] = [
    ['GET', `${configMaps(home)}/a%2Fb`, `get "configmaps/b" "a"${inHome}`],
    ['GET', `/api/v1/namespaces/${home}%2Fconfigmaps/a`, `get "configmaps" "a"${inHome}`],
    ['GET', `${configMaps(home)}//`, `list "configmaps"${inHome}`],
    ['GET', `${configMaps(home)}/a/b/c/d`, `get "configmaps/b" "a"${inHome}`],
    ['GET', `/${maps}`, `list "configmaps"${atCluster}`],
    ['GET', `/api/v1/namespaces/${home}`, `get "namespaces" "${home}"${inHome}`],
    ['DELETE', `/api/v1/namespaces/${home}`, `delete "namespaces" "${home}"${inHome}`],
    ['GET', `/api/v1/namespaces/${home}/status/b`, `get "namespaces/status" "${home}"${inHome}`],
    ['GET', `/apis/foo/v1/namespaces/${home}`, `get "namespaces" "${home}"${inHome}`],
    [
      'GET',
      `/api/v1/namespaces?fieldSelector=metadata.name=${home}`,
      `list "namespaces" "${home}"${atCluster}`,
    ],
    ['GET', selected('metadata.name=a'), `list "configmaps" "a"${atCluster}`],
    ['GET', selected('metadata.name==a', '&watch=1'), `watch "configmaps" "a"${atCluster}`],
    ['GET', selected('metadata.name=a\\,b'), `list "configmaps" "a,b"${atCluster}`],
    ['GET', selected('metadata.name=a,metadata.name=b'), `list "configmaps" "a"${atCluster}`],
    ['GET', selected('metadata.name!=a'), `list "configmaps"${atCluster}`],
    ['GET', selected('metadata.name=a/b'), `list "configmaps"${atCluster}`],
    ['GET', selected('metadata.name=..'), `list "configmaps"${atCluster}`],
    ['GET', selected('metadata.name=a,b'), `list "configmaps"${atCluster}`],
    ['GET', selected('metadata.name=a', '&limit=x'), `list "configmaps"${atCluster}`],
    ['GET', selected('metadata.name=a', '&labelSelector=(('), `list "configmaps"${atCluster}`],
    [
      'DELETE',
      `${configMaps(home)}?fieldSelector=metadata.name=a`,
      `deletecollection "configmaps"${inHome}`,
    ],
    ['GET', `/api/v1/watch/namespaces/${home}/configmaps/a`, `watch "configmaps" "a"${inHome}`],
    [
      'GET',
      `/api/v1/watch/namespaces/${home}/configmaps?fieldSelector=metadata.name=a`,
      `watch "configmaps"${inHome}`,
    ],
    ['GET', `/api/v1/watch/namespaces/${home}`, `watch "namespaces" "${home}"${inHome}`],
    ['PUT', `/api/v1/watch/namespaces/${home}/configmaps`, `watch "configmaps"${inHome}`],
    ['GET', `/api/v1/proxy/namespaces/${home}/pods/a`, `proxy "pods" "a"${inHome}`],
    ['GET', '/healthz%2Fother%20', 'get "/healthz/other "'],
  ];
  for (const [method, path, expected] of cases) {
    const { status, body } = await send(user, method, path);
    assert.equal(status, 403, path);
    const [, resource, name = '', where] =
      /^(\S+?)(?: ("[^ ]+"))? is forbidden: .*( in the namespace .*| at the cluster scope)$/.exec(
        body.message,
      ) ?? [];
    const [, verb, what] = /cannot (\S+) (?:resource|path) ("[^"]+")/.exec(body.message) ?? [];
    const shown = resource === undefined ? `${verb} ${what}` : `${verb} ${what} ${name}${where}`;
    assert.equal(shown.replaceAll('  ', ' '), expected, path);
  }
});

describe('resource names in a rule', () => {
  const rule = { apiGroups: [''], resources: ['configmaps', 'namespaces'], resourceNames: ['a'] };

  test('permit lists and watches of that name, but no deletion of a collection', async () => {
    const user = await userWith({ ...rule, verbs: ['list', 'deletecollection'] });
    const path = `${configMaps(home)}?fieldSelector=metadata.name=a`;
    assert.equal((await send(user, 'GET', path)).status, 200);
    assert.equal((await send(user, 'GET', configMaps(home))).status, 403);
    assert.equal((await send(user, 'DELETE', path)).status, 403);
  });

  test('permit no creation, whose path has no name', async () => {
    const user = await userWith({ ...rule, verbs: ['create'] });
    assert.equal((await send(user, 'POST', configMaps(home), configMap('a'))).status, 403);
  });
});

describe('an update that creates the object', () => {
  const lease = (name: string) => ({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name },
  });
  const leases = () => `/apis/coordination.k8s.io/v1/namespaces/${home}/leases`;
  const rule = { apiGroups: ['', 'coordination.k8s.io'], resources: ['configmaps', 'leases'] };

  test('needs the permission to create it', async () => {
    const updater = await userWith({ ...rule, verbs: ['update', 'patch'] });
    const creator = await userWith({ ...rule, verbs: ['update', 'patch', 'create'] });
    const writes: [HttpRequest['method'], string, object, string][] = [
      ['PUT', `${leases()}/put`, lease('put'), JSON_TYPE],
      ['PATCH', `${configMaps(home)}/applied?fieldManager=x`, configMap('applied'), APPLY],
    ];
    for (const [method, path, object, type] of writes) {
      const denied = await send(updater, method, path, object, type);
      assert.equal(denied.status, 403, path);
      assert.match(denied.body.message, /cannot create resource/);
      assert.equal((await send(creator, method, path, object, type)).status, 201, path);
    }
  });

  test('is validated before', async () => {
    const updater = await userWith({ ...rule, verbs: ['update', 'patch'] });
    const invalid = { ...lease('invalid'), spec: { leaseDurationSeconds: 0 } };
    assert.equal((await send(updater, 'PUT', `${leases()}/invalid`, invalid)).status, 422);
  });
});

describe('admission policies', () => {
  const write = {
    verbs: ['create', 'update'],
    apiGroups: ['admissionregistration.k8s.io'],
    resources: ['validatingadmissionpolicies', 'validatingadmissionpolicybindings'],
  };
  const policy = (name: string, paramKind: object) => ({
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name: `${name}-${home}` },
    spec: {
      paramKind,
      matchConstraints: {
        resourceRules: [
          { apiGroups: ['none.example'], apiVersions: ['*'], operations: ['*'], resources: ['*'] },
        ],
      },
      validations: [{ expression: 'true' }],
    },
  });
  const binding = (name: string, policyName: string, paramRef: object) => ({
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name: `${name}-${home}` },
    spec: { policyName: `${policyName}-${home}`, validationActions: ['Deny'], paramRef },
  });
  const shown = ({ status, body }: Reply, user: string) =>
    status === 201
      ? 'created'
      : body.details.causes[0].message
          .replaceAll(user, 'USER')
          .replaceAll(home, 'HOME')
          .replace('Forbidden: ', '');

  test('need the permission to read their parameters', async () => {
    const read = { verbs: ['get', 'list'], apiGroups: [''], resources: ['configmaps'] };
    const reader = await userWith(read, write);
    const writer = await userWith(write);
    const who = 'user &{USER  [system:authenticated] map[]}';
    const policies: [string, string, object, string][] = [
      ['one', reader, { apiVersion: 'v1', kind: 'ConfigMap' }, 'created'],
      [
        'two',
        writer,
        { apiVersion: 'v1', kind: 'ConfigMap' },
        `${who} must have "get" permission on all objects of the referenced paramKind (kind=ConfigMap, apiVersion=v1)`,
      ],
      [
        'three',
        reader,
        { apiVersion: 'none.example/v1', kind: 'Foo' },
        `${who} must have "get" permission on all objects of the referenced paramKind (kind=Foo, apiVersion=none.example/v1)`,
      ],
    ];
    for (const [name, user, paramKind, expected] of policies) {
      const path = `${POLICIES}/validatingadmissionpolicies`;
      const reply = await send(user, 'POST', path, policy(name, paramKind));
      assert.equal(shown(reply, user), expected, name);
    }
    const byName = { name: 'a', namespace: home, parameterNotFoundAction: 'Allow' };
    const bySelector = { selector: {}, parameterNotFoundAction: 'Allow' };
    const denied = (verb: string) =>
      `${who} does not have "${verb}" permission on the object referenced by paramRef`;
    const bindings: [string, string, string, object, string][] = [
      ['one', reader, 'one', byName, 'created'],
      ['two', reader, 'one', bySelector, 'created'],
      ['three', writer, 'one', byName, denied('get')],
      ['four', writer, 'one', bySelector, denied('list')],
      [
        'five',
        writer,
        'none',
        byName,
        `unable to get policy none-HOME to determine minimum required permissions and ${who} does not have "get" permission for all groups, versions and resources`,
      ],
    ];
    for (const [name, user, policyName, paramRef, expected] of bindings) {
      const path = `${POLICIES}/validatingadmissionpolicybindings`;
      const reply = await send(user, 'POST', path, binding(name, policyName, paramRef));
      assert.equal(shown(reply, user), expected, name);
    }
  });
});

describe('ResourceClaims', () => {
  const CLAIMS = '/apis/resource.k8s.io/v1';
  const claim = (name: string, more: object = {}) => ({
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceClaim',
    metadata: { name },
    spec: {
      devices: {
        requests: [{ name: 'gpu', exactly: { deviceClassName: 'gpu.example', ...more } }],
      },
    },
  });

  test('request admin access in a labelled namespace only', skipBefore(36), async () => {
    const path = (namespace: string) => `${CLAIMS}/namespaces/${namespace}/resourceclaims`;
    const denied = await api.post(path(home), claim('admin', { adminAccess: true }));
    assert.equal(denied.status, 422);
    assert.equal(denied.body.details.causes[0].field, 'spec.devices.requests[0].adminAccess');
    const label = { metadata: { labels: { 'resource.kubernetes.io/admin-access': 'true' } } };
    const labelled = await api.namespace();
    await api.made(api.patch(`/api/v1/namespaces/${labelled}`, label));
    const made = await api.post(path(labelled), claim('admin', { adminAccess: true }));
    assert.equal(made.status, 201);
  });

  test('are allocated by users with the permission to bind them', skipBefore(37), async () => {
    const path = `${CLAIMS}/namespaces/${home}/resourceclaims`;
    const stored = await api.made(api.post(path, claim('allocated')));
    const status = { apiGroups: ['resource.k8s.io'], resources: ['resourceclaims/status'] };
    const bind = { apiGroups: ['resource.k8s.io'], resources: ['resourceclaims/binding'] };
    const drive = { apiGroups: ['resource.k8s.io'], resources: ['resourceclaims/driver'] };
    const writer = await userWith({ ...status, verbs: ['update'] });
    const scheduler = await userWith(
      { ...status, verbs: ['update'] },
      { ...bind, verbs: ['update'] },
    );
    const device = { request: 'gpu', driver: 'gpu.example', pool: 'a', device: 'b' };
    const allocated = {
      ...stored,
      status: { allocation: { devices: { results: [device] } } },
    };
    const put = (user: string, object: object) =>
      send(user, 'PUT', `${path}/allocated/status`, object);
    const denied = await put(writer, allocated);
    assert.equal(denied.status, 422);
    assert.match(denied.body.message, /requires resource="resourceclaims\/binding", verb="update"/);
    const made = await put(scheduler, allocated);
    assert.equal(made.status, 200);
    const reported = structuredClone(made.body);
    reported.status.devices = [{ driver: 'gpu.example', pool: 'a', device: 'b' }];
    const undriven = await put(scheduler, reported);
    assert.equal(undriven.status, 422);
    assert.match(undriven.body.message, /verb="\[arbitrary-node:update\]" permission/);
    const driver = await userWith(
      { ...status, verbs: ['update'] },
      { ...drive, verbs: ['arbitrary-node:update'], resourceNames: ['gpu.example'] },
    );
    assert.equal((await put(driver, reported)).status, 200);
  });
});

test('a WebSocket to a Pod needs the permission to create it', skipBefore(35), async () => {
  const user = await userWith({ verbs: ['get'], apiGroups: [''], resources: ['pods/exec'] });
  const reply = await send(user, 'GET', `/api/v1/namespaces/${home}/pods/none/exec`);
  assert.equal(reply.status, 403);
});

test('a binding without a role, or with a role of another kind, is refused to a user who may not bind', async () => {
  const group = 'rbac.authorization.k8s.io';
  const user = await userWith({
    verbs: ['create'],
    apiGroups: [group],
    resources: ['rolebindings'],
  });
  const path = `${RBAC}/namespaces/${home}/rolebindings`;
  for (const [roleRef, message] of [
    [undefined, 'unsupported role reference kind: ""'],
    [{ apiGroup: group, kind: 'User', name: 'a' }, 'unsupported role reference kind: "User"'],
    [{ apiGroup: group, kind: 'Role', name: 'absent' }, `rolebindings.${group} "absent" not found`],
  ] as const) {
    const { status, body } = await send(user, 'POST', path, { metadata: { name: 'a' }, roleRef });
    const expected = message.includes('not found') ? 404 : 500;
    assert.deepEqual([status, body.message], [expected, message]);
  }
});
