import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import type { Json, Reply } from './api.ts';
import { Api, assertRejected } from './api.ts';
import type { KeyAndRequest } from '../support/certificate-request.ts';
import { createCertificateAuthority } from '../../src/util/x509.ts';
import { certificateRequest } from '../support/certificate-request.ts';
import { configMap, configMaps, deployment, deployments } from './objects.ts';
import { skipBefore } from '../support/skip.ts';

const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const GROUP = 'rbac.authorization.k8s.io';
const REVIEWS = '/apis/authorization.k8s.io/v1';

let api: Api;
/** Namespace of one test. */
let home: string;
/** User of one test, who has no permissions at first. */
let user: string;

before(async () => {
  api = await Api.start();
});

after(() => api.close());

const as = (name: string, ...groups: readonly string[]) => ({
  'impersonate-user': name,
  ...(groups.length > 0 && { 'impersonate-group': groups.join(', ') }),
});

function ask(method: 'GET' | 'DELETE', path: string, headers: Json = as(user)): Promise<Reply> {
  return api.send(method, path, undefined, headers);
}

function write(
  method: 'POST' | 'PUT' | 'PATCH',
  path: string,
  body: unknown,
  headers: Json = as(user),
): Promise<Reply> {
  const type = method === 'PATCH' ? { 'content-type': 'application/merge-patch+json' } : {};
  return api.send(method, path, body, { ...headers, ...type });
}

const role = (name: string, rules: readonly Json[]) => ({
  apiVersion: `${GROUP}/v1`,
  kind: 'Role',
  metadata: { name },
  rules,
});

const clusterRole = (name: string, rules: readonly Json[], more: Json = {}) => ({
  ...role(name, rules),
  kind: 'ClusterRole',
  ...more,
  metadata: { name, ...more.metadata },
});

const binding = (name: string, kind: string, ref: string, subjects: readonly Json[]) => ({
  apiVersion: `${GROUP}/v1`,
  kind: 'RoleBinding',
  metadata: { name },
  roleRef: { apiGroup: GROUP, kind, name: ref },
  subjects,
});

const clusterBinding = (name: string, ref: string, subjects: readonly Json[]) => ({
  ...binding(name, 'ClusterRole', ref, subjects),
  kind: 'ClusterRoleBinding',
});

const person = (name: string) => ({ kind: 'User', apiGroup: GROUP, name });
const roles = () => `${RBAC}/namespaces/${home}/roles`;
const bindings = () => `${RBAC}/namespaces/${home}/rolebindings`;

const READ = { verbs: ['get', 'list'], apiGroups: [''], resources: ['configmaps'] };

/** Creates a ClusterRole with the rules and binds it to the user in all namespaces. */
async function grant(...rules: readonly Json[]): Promise<string> {
  const name = `granted-${home}`;
  await api.made(api.post(`${RBAC}/clusterroles`, clusterRole(name, rules)));
  await api.made(
    api.post(`${RBAC}/clusterrolebindings`, clusterBinding(name, name, [person(user)])),
  );
  return name;
}

/** Waits until the authorizer has processed earlier writes. */
function untilStatus(expected: number, request: () => Promise<Reply>): Promise<Reply> {
  return api.until(`status ${expected}`, async () => {
    const reply = await request();
    return reply.status === expected ? reply : undefined;
  }) as Promise<Reply>;
}

describe('access', () => {
  beforeEach(async () => {
    home = await api.namespace();
    user = `user-${home}`;
  });

  test('a user may do what a binding in the namespace grants, until the binding is deleted', async () => {
    const elsewhere = await api.namespace();
    const denied = await ask('GET', configMaps(home));
    assertRejected(denied, {
      code: 403,
      reason: 'Forbidden',
      message: `configmaps is forbidden: User "${user}" cannot list resource "configmaps" in API group "" in the namespace "${home}"`,
      details: { kind: 'configmaps' },
    });
    await api.made(api.post(roles(), role('reader', [READ])));
    await api.made(api.post(bindings(), binding('reader', 'Role', 'reader', [person(user)])));
    await untilStatus(200, () => ask('GET', configMaps(home)));
    assert.equal((await ask('GET', configMaps(elsewhere))).status, 403);
    assert.equal((await ask('GET', '/api/v1/configmaps')).status, 403);
    assert.equal((await write('POST', configMaps(home), configMap('a'))).status, 403);
    await api.made(api.delete(`${bindings()}/reader`));
    await untilStatus(403, () => ask('GET', configMaps(home)));
  });

  test(
    'a role takes effect when it is changed, and a missing role is named in the error',
    skipBefore(37),
    async () => {
      const subjects = [{ kind: 'Group', apiGroup: GROUP, name: `team-${home}` }];
      const member = as(user, `team-${home}`);
      await api.made(api.post(bindings(), binding('team', 'Role', 'missing', subjects)));
      const reply = await api.until('the binding is known', async () => {
        const denied = await ask('GET', `${configMaps(home)}/a`, member);
        return denied.body.message.includes('RBAC') ? denied : undefined;
      });
      assertRejected(reply as Reply, {
        code: 403,
        reason: 'Forbidden',
        message: `configmaps "a" is forbidden: User "${user}" cannot get resource "configmaps" in API group "" in the namespace "${home}": rbac: RBAC: role.rbac.authorization.k8s.io "missing" not found`,
        details: { name: 'a', kind: 'configmaps' },
      });
      await api.made(api.post(roles(), role('missing', [READ])));
      await untilStatus(404, () => ask('GET', `${configMaps(home)}/a`, member));
      assert.equal((await ask('GET', `${configMaps(home)}/a`)).status, 403);
      await api.made(api.patch(`${roles()}/missing`, { rules: [] }));
      await untilStatus(403, () => ask('GET', `${configMaps(home)}/a`, member));
    },
  );

  test('a ClusterRole can be bound in one namespace, also to a ServiceAccount of the namespace', async () => {
    const name = `reader-${home}`;
    await api.made(api.post(`${RBAC}/clusterroles`, clusterRole(name, [READ])));
    const subjects = [{ kind: 'ServiceAccount', name: 'robot', namespace: home }];
    await api.made(api.post(bindings(), binding('robot', 'ClusterRole', name, subjects)));
    const robot = as(`system:serviceaccount:${home}:robot`);
    await untilStatus(200, () => ask('GET', configMaps(home), robot));
    assert.equal((await ask('GET', '/api/v1/configmaps', robot)).status, 403);
    const group = [{ kind: 'Group', apiGroup: GROUP, name: `system:serviceaccounts:${home}` }];
    await api.made(api.post(`${RBAC}/clusterrolebindings`, clusterBinding(name, name, group)));
    await untilStatus(200, () => ask('GET', '/api/v1/configmaps', robot));
  });

  test('rules limit names, subresources and paths', async () => {
    await grant(
      { ...READ, verbs: ['get', 'list', 'watch', 'delete'], resourceNames: ['mine'] },
      { verbs: ['get'], apiGroups: ['apps'], resources: ['*/scale'] },
      { verbs: ['get'], nonResourceURLs: ['/metrics', '/logs/*'] },
    );
    const mine = `${configMaps(home)}/mine`;
    await api.made(api.post(configMaps(home), configMap('mine')));
    await api.made(api.post(deployments(home), deployment('web')));
    await untilStatus(200, () => ask('GET', mine));
    for (const [method, path, expected] of [
      ['GET', `${configMaps(home)}/other`, 403],
      ['GET', configMaps(home), 403],
      ['GET', `${configMaps(home)}?fieldSelector=metadata.name%3Dmine`, 200],
      ['GET', `${configMaps(home)}?fieldSelector=metadata.name%3Dother`, 403],
      ['GET', `${deployments(home)}/web/scale`, 200],
      ['GET', `${deployments(home)}/web`, 403],
      ['GET', `${deployments(home)}/web/status`, 403],
      ['GET', '/logs/none', 404],
      ['GET', '/configz', 403],
      ['DELETE', mine, 200],
    ] as const) {
      assert.equal((await ask(method, path)).status, expected, `${method} ${path}`);
    }
    assertRejected(await ask('GET', '/configz'), {
      code: 403,
      reason: 'Forbidden',
      message: `forbidden: User "${user}" cannot get path "/configz"`,
      details: {},
    });
  });

  test('access reviews give the binding as the reason, and list the rules of the user', async () => {
    const name = await grant(READ, { verbs: ['get'], nonResourceURLs: ['/metrics'] });
    await untilStatus(200, () => ask('GET', configMaps(home)));
    const resourceAttributes = { verb: 'get', resource: 'configmaps', namespace: home };
    const { status } = await api.made(
      api.post(`${REVIEWS}/subjectaccessreviews`, { spec: { user, resourceAttributes } }),
    );
    assert.deepEqual(status, {
      allowed: true,
      reason: `RBAC: allowed by ClusterRoleBinding "${name}" of ClusterRole "${name}" to User "${user}"`,
    });
    const own = await api.made(
      write('POST', `${REVIEWS}/selfsubjectaccessreviews`, {
        spec: { resourceAttributes: { ...resourceAttributes, verb: 'delete' } },
      }),
    );
    assert.deepEqual(own.status, { allowed: false });
    const rules = await api.made(
      write('POST', `${REVIEWS}/selfsubjectrulesreviews`, { spec: { namespace: home } }),
    );
    const { resourceRules, nonResourceRules, incomplete } = rules.status;
    assert.equal(incomplete, false);
    assert.ok(
      resourceRules.some(
        (rule: Json) => rule.resources.includes('configmaps') && rule.verbs.includes('list'),
      ),
    );
    assert.ok(nonResourceRules.some((rule: Json) => rule.nonResourceURLs.includes('/metrics')));
  });

  test('a user cannot write a role with permissions that the user does not have', async () => {
    await grant(READ, {
      verbs: ['create', 'update', 'patch', 'get'],
      apiGroups: [GROUP],
      resources: ['roles', 'clusterroles'],
    });
    await untilStatus(201, () => write('POST', roles(), role('harmless', [READ])));
    const excessive = [
      READ,
      { verbs: ['get', 'delete'], apiGroups: [''], resources: ['secrets', 'configmaps'] },
      {
        verbs: ['get'],
        apiGroups: ['apps'],
        resources: ['deployments'],
        resourceNames: ['a', 'b'],
      },
    ];
    const message = `is forbidden: user "${user}" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:
{APIGroups:[""], Resources:["configmaps"], Verbs:["delete"]}
{APIGroups:[""], Resources:["secrets"], Verbs:["get" "delete"]}
{APIGroups:["apps"], Resources:["deployments"], ResourceNames:["a"], Verbs:["get"]}
{APIGroups:["apps"], Resources:["deployments"], ResourceNames:["b"], Verbs:["get"]}`;
    assertRejected(await write('POST', roles(), role('excessive', excessive)), {
      code: 403,
      reason: 'Forbidden',
      message: `roles.${GROUP} "excessive" ${message}`,
      details: { name: 'excessive', group: GROUP, kind: 'roles' },
    });
    assertRejected(await write('PATCH', `${roles()}/harmless`, { rules: excessive }), {
      code: 403,
      reason: 'Forbidden',
      message: `roles.${GROUP} "harmless" ${message}`,
    });
    const name = `excessive-${home}`;
    assertRejected(
      await write(
        'POST',
        `${RBAC}/clusterroles`,
        clusterRole(name, [{ verbs: ['get'], nonResourceURLs: ['/logs'] }]),
      ),
      {
        code: 403,
        reason: 'Forbidden',
        message: `clusterroles.${GROUP} "${name}" is forbidden: user "${user}" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n{NonResourceURLs:["/logs"], Verbs:["get"]}`,
      },
    );
    const aggregationRule = { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] };
    assertRejected(
      await write('POST', `${RBAC}/clusterroles`, clusterRole(name, [], { aggregationRule })),
      {
        code: 403,
        reason: 'Forbidden',
        message: `clusterroles.${GROUP} "${name}" is forbidden: must have cluster-admin privileges to use the aggregationRule`,
      },
    );
  });

  test('owner references and finalizers of a role with more permissions can be changed', async () => {
    await api.made(
      api.post(roles(), {
        ...role('powerful', [{ ...READ, verbs: ['*'] }]),
        metadata: { name: 'powerful', finalizers: ['example.com/a'] },
      }),
    );
    await grant({ verbs: ['patch', 'update', 'get'], apiGroups: [GROUP], resources: ['roles'] });
    await untilStatus(200, () => ask('GET', `${roles()}/powerful`));
    const relabel = { metadata: { labels: { a: 'b' } } };
    assert.equal((await write('PATCH', `${roles()}/powerful`, relabel)).status, 403);
    // The same role, without the metadata that the server sets.
    const same = role('powerful', [{ ...READ, verbs: ['*'] }]);
    assert.equal((await write('PUT', `${roles()}/powerful`, same)).status, 403);
    // The permissions precede the check of the resourceVersion.
    const outdated = { ...same, metadata: { name: 'powerful', resourceVersion: '1' } };
    assert.equal((await write('PUT', `${roles()}/powerful`, outdated)).status, 403);
    const release = { metadata: { finalizers: null } };
    assert.equal((await write('PATCH', `${roles()}/powerful`, release)).status, 200);
  });

  test('the verb escalate permits roles with further permissions', async () => {
    await grant({
      verbs: ['create', 'update', 'escalate'],
      apiGroups: [GROUP],
      resources: ['roles'],
    });
    await untilStatus(201, () => write('POST', roles(), role('any', [{ ...READ, verbs: ['*'] }])));
  });

  test('a user cannot bind a role with permissions that the user does not have', async () => {
    const name = await grant(READ, {
      verbs: ['create', 'patch'],
      apiGroups: [GROUP],
      resources: ['rolebindings', 'clusterrolebindings'],
    });
    const all = [{ verbs: ['*'], apiGroups: [''], resources: ['secrets'] }];
    await api.made(api.post(roles(), role('reader', [READ])));
    await api.made(api.post(roles(), role('all', all)));
    await untilStatus(201, () =>
      write('POST', bindings(), binding('reader', 'Role', 'reader', [person('jane')])),
    );
    const lacking = `is forbidden: user "${user}" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["secrets"], Verbs:["*"]}`;
    assertRejected(
      await write('POST', bindings(), binding('all', 'Role', 'all', [person('jane')])),
      {
        code: 403,
        reason: 'Forbidden',
        message: `rolebindings.${GROUP} "all" ${lacking}`,
        details: { name: 'all', group: GROUP, kind: 'rolebindings' },
      },
    );
    const { status, body } = await write(
      'POST',
      `${RBAC}/clusterrolebindings`,
      clusterBinding(name, 'cluster-admin', [person('jane')]),
    );
    assert.equal(status, 403);
    assert.match(
      body.message,
      /\n\{APIGroups:\["\*"\], Resources:\["\*"\], Verbs:\["\*"\]\}\n\{NonResourceURLs:\["\*"\], Verbs:\["\*"\]\}$/,
    );
    assertRejected(
      await write('POST', bindings(), binding('none', 'Role', 'none', [person('jane')])),
      { code: 404, reason: 'NotFound', message: `rolebindings.${GROUP} "none" not found` },
    );
  });

  test('the verb bind permits bindings of the named role', async () => {
    await grant(
      { verbs: ['create'], apiGroups: [GROUP], resources: ['rolebindings'] },
      { verbs: ['bind'], apiGroups: [GROUP], resources: ['roles'], resourceNames: ['all'] },
    );
    const all = [{ verbs: ['*'], apiGroups: [''], resources: ['secrets'] }];
    await api.made(api.post(roles(), role('all', all)));
    await api.made(api.post(roles(), role('other', all)));
    await untilStatus(201, () =>
      write('POST', bindings(), binding('all', 'Role', 'all', [person('jane')])),
    );
    const other = binding('other', 'Role', 'other', [person('jane')]);
    assert.equal((await write('POST', bindings(), other)).status, 403);
  });

  test('a user may impersonate others for some verbs only', async () => {
    const accounts = `/api/v1/namespaces/${home}/serviceaccounts`;
    await api.made(api.post(accounts, { metadata: { name: 'actor' } }));
    const made = await api.made(api.post(`${accounts}/actor/token`, {}));
    const actor = { authorization: `Bearer ${made.status.token}` };
    user = `system:serviceaccount:${home}:actor`;
    const jane = `jane-${home}`;
    const refused = (verb: string, why = '') => ({
      code: 403,
      reason: 'Forbidden',
      message: `configmaps is forbidden: User "${user}" cannot ${verb} resource "configmaps" in API group "" in the namespace "${home}"${why}`,
    });
    const list = (...groups: string[]) =>
      ask('GET', configMaps(home), { ...actor, ...as(jane, ...groups) });
    assertRejected(await list(), refused('impersonate-on:user-info:list'));
    const authentication = { apiGroups: ['authentication.k8s.io'] };
    await grant(
      {
        ...authentication,
        verbs: ['impersonate:user-info'],
        resources: ['users'],
        resourceNames: [jane],
      },
      { ...authentication, verbs: ['impersonate:user-info'], resources: ['groups'] },
      { apiGroups: [''], verbs: ['impersonate-on:user-info:list'], resources: ['configmaps'] },
    );
    await api.made(api.post(roles(), role('reader', [READ])));
    await api.made(api.post(bindings(), binding('reader', 'Role', 'reader', [person(jane)])));
    await untilStatus(200, () => list());
    assert.equal((await list('team-a')).status, 200);
    assertRejected(await list('system:masters'), {
      code: 403,
      reason: 'Forbidden',
      message:
        /groups.authentication.k8s.io "system:masters" is forbidden: .*: impersonating the system:masters group is not allowed$/,
    });
    const headers = { ...actor, ...as(jane) };
    assertRejected(
      await write('POST', configMaps(home), configMap('a'), headers),
      refused('impersonate-on:user-info:create'),
    );
    assertRejected(await ask('GET', configMaps(home), { ...actor, ...as('joe') }), {
      code: 403,
      reason: 'Forbidden',
      message: `users.authentication.k8s.io "joe" is forbidden: User "${user}" cannot impersonate:user-info resource "users" in API group "authentication.k8s.io" at the cluster scope`,
    });
  });

  test('a request without a token is anonymous, and one with an unknown token is rejected', async () => {
    const anonymous = { authorization: '' };
    assertRejected(await ask('GET', '/api', anonymous), {
      code: 403,
      reason: 'Forbidden',
      message: 'forbidden: User "system:anonymous" cannot get path "/api"',
      details: {},
    });
    assertRejected(await ask('GET', configMaps(home), { ...anonymous, ...as('jane') }), {
      code: 403,
      reason: 'Forbidden',
      message: /User "system:anonymous" cannot impersonate/,
    });
    for (const path of ['/healthz', '/livez', '/readyz', '/version']) {
      assert.equal((await ask('GET', path, anonymous)).status, 200, path);
    }
    for (const path of ['/healthz', '/api', configMaps(home)]) {
      const reply = await ask('GET', path, { authorization: 'Bearer unknown' });
      assertRejected(reply, { code: 401, reason: 'Unauthorized', message: 'Unauthorized' });
    }
  });
});

describe('CertificateSigningRequests', () => {
  beforeEach(async () => {
    home = await api.namespace();
    user = `user-${home}`;
  });

  const CSRS = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
  const csr = (name: string, { pem }: KeyAndRequest, spec: Json = {}): Json => ({
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name },
    spec: {
      request: Buffer.from(pem).toString('base64'),
      signerName: 'kubernetes.io/kube-apiserver-client',
      usages: ['client auth'],
      ...spec,
    },
  });
  const denied = (name: string, why: string) => ({
    code: 403,
    reason: 'Forbidden',
    message: `certificatesigningrequests.certificates.k8s.io "${name}" is forbidden: ${why}`,
  });

  test('are approved by users with permission for the signer', async () => {
    const name = `${home}-approved`;
    await api.made(api.post(CSRS, csr(name, certificateRequest('jane'))));
    const body = {
      status: { conditions: [{ type: 'Approved', status: 'True', reason: 'a', message: '' }] },
    };
    const resources = ['approval', 'status'].map((part) => `certificatesigningrequests/${part}`);
    await grant({ apiGroups: ['certificates.k8s.io'], resources, verbs: ['patch'] });
    const signer = '"kubernetes.io/kube-apiserver-client"';
    const reply = await api.until('the role has an effect', async () => {
      const reply = await write('PATCH', `${CSRS}/${name}/approval`, body);
      return reply.body.message.includes('signerName') ? reply : undefined;
    });
    assertRejected(
      reply as Reply,
      denied(name, `user not permitted to approve requests with signerName ${signer}`),
    );
    const failed = {
      status: { conditions: [{ type: 'Failed', status: 'True', reason: 'a', message: '' }] },
    };
    assertRejected(
      await write('PATCH', `${CSRS}/${name}/status`, failed),
      denied(name, `user not permitted to sign requests with signerName ${signer}`),
    );
    await api.made(api.patch(`${CSRS}/${name}/approval`, body));
  });

  test('keep decisions, and only get certificates', skipBefore(37), async () => {
    const name = `${home}-decided`;
    const spec = { signerName: 'example.com/signer' };
    await api.made(api.post(CSRS, csr(name, certificateRequest('jane'), spec)));
    const decided = (...types: string[]) => ({
      status: {
        conditions: types.map((type) => ({ type, status: 'True', reason: 'a', message: '' })),
      },
    });
    await api.made(api.patch(`${CSRS}/${name}/approval`, decided('Approved')));
    const { pem } = certificateRequest('jane');
    const certificate = (text: string) => ({
      status: { certificate: Buffer.from(text).toString('base64') },
    });
    const message = async (subresource: string, body: Json) =>
      (await api.patch(`${CSRS}/${name}/${subresource}`, body)).body.message;
    const invalid = `CertificateSigningRequest.certificates.k8s.io "${name}" is invalid: status.`;
    assert.deepEqual(
      [
        await message('approval', decided()),
        await message('approval', decided('Approved', 'Denied')),
        await message('status', certificate('none')),
        await message('status', certificate(pem)),
      ],
      [
        `${invalid}conditions: Forbidden: updates may not remove a condition of type "Approved"`,
        `${invalid}conditions: Invalid value: "{conditions[{\\"type\\": \\"Approved\\"}], conditions[{\\"type\\": \\"Denied\\"}]}": must specify at most one of: \`conditions[{"type": "Approved"}]\`, \`conditions[{"type": "Denied"}]\``,
        `${invalid}certificate: Invalid value: "<certificate data>": must contain at least one CERTIFICATE PEM block`,
        `${invalid}certificate: Invalid value: "<certificate data>": only CERTIFICATE PEM blocks are allowed, found "CERTIFICATE REQUEST"`,
      ],
    );
    const { certificatePem } = await createCertificateAuthority({ commonName: 'signer' });
    await api.made(api.patch(`${CSRS}/${name}/status`, certificate(certificatePem)));
    assert.equal(
      await message('status', { status: { certificate: null } }),
      `${invalid}certificate: Forbidden: updates may not modify existing certificate content`,
    );
  });

  test('for system:masters and without a valid signature are rejected', async () => {
    const name = `${home}-masters`;
    assertRejected(
      await api.post(CSRS, csr(name, certificateRequest('jane', ['system:masters']))),
      denied(
        name,
        'use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed',
      ),
    );
    const [one, other] = [certificateRequest('jane'), certificateRequest('joe')];
    const bytes = (text: string) => Buffer.from(text.split('-----')[2] ?? '', 'base64');
    const mixed = Buffer.concat([bytes(one.pem).subarray(0, -40), bytes(other.pem).subarray(-40)]);
    const pem = one.pem.replace(/(?<=REQUEST-----\n)[^-]+/, `${mixed.toString('base64')}\n`);
    for (const each of [
      { ...one, pem },
      { ...one, pem: 'none' },
    ]) {
      const { status, body } = await api.post(CSRS, csr(name, each));
      assert.equal(status, 422);
      assert.equal(body.details.causes[0].field, 'spec.request');
    }
  });
});
