import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, test } from 'node:test';
import type { TestContext } from 'node:test';
import { isApiError } from '../../../src/api/api-error.ts';
import {
  NAMESPACES,
  CLUSTER_ROLE_BINDINGS,
  CLUSTER_ROLES,
  CONFIG_MAPS,
  DEPLOYMENTS,
  EVENTS,
  PODS,
  ROLE_BINDINGS,
} from '../../../src/api/builtin.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { permissionsOf, withPermissions } from '../../../src/codegen/role-rules.ts';
import type { HttpHandler } from '../../../src/util/http.ts';
import { TestedRole } from '../../../src/codegen/tested-role.ts';

/** Returns the text of a ClusterRole with its binding. */
function roleText(name: string, rules: readonly string[]): string {
  return [
    `# Comment of ${name}.`,
    'apiVersion: rbac.authorization.k8s.io/v1',
    'kind: ClusterRole',
    `metadata: { name: ${name} }`,
    'rules:',
    ...rules.map((rule) => `  - ${rule} # mine`),
    '---',
    '# Comment of the binding.',
    'apiVersion: rbac.authorization.k8s.io/v1',
    'kind: ClusterRoleBinding',
    `metadata: { name: ${name} }`,
    `roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ${name} }`,
    'subjects: [{ kind: ServiceAccount, name: operator, namespace: operator-system }]',
    '',
  ].join('\n');
}

/** Returns a role in a file, and a client with its permissions. */
async function start(context: TestContext, ...rules: string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'tested-role-'));
  context.after(() => rmSync(folder, { recursive: true }));
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const events = '{ apiGroups: [""], resources: [events], verbs: [create, patch] }';
  const role = new TestedRole(write('role.yaml', roleText('operator', rules)), [
    write('events.yaml', roleText('events', [events])),
  ]);
  const server = new ApiServer();
  const denied: string[] = [];
  const handler = await role.handler(server, (line) => denied.push(line));
  return {
    role,
    write,
    server,
    handler,
    denied,
    client: new HttpClient({ handler, server: 'https://test' }),
  };
}

const POD = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { namespace: 'default', name: 'a' },
  spec: { containers: [{ name: 'app', image: 'nginx' }] },
};

test('permits what the manifests grant, and reports missing and superfluous permissions', async (context) => {
  const { client, role } = await start(
    context,
    '{ apiGroups: [""], resources: [pods], verbs: [create, delete] }',
  );
  await client.create(PODS, POD);
  await assert.rejects(client.list(DEPLOYMENTS), (error) => isApiError(error, 'forbidden'));
  await assert.rejects(role.verify(), (error: Error) => {
    assert.match(error.message, /missing: list deployments\.apps\n {2}not needed: delete pods\n/);
    return true;
  });
});

test('accepts a role with exactly the permissions that the requests need', async (context) => {
  const { client, role } = await start(
    context,
    '{ apiGroups: [apps], resources: [deployments], verbs: [create] }',
    // get: the read after a lost response, because the informer may not show the Pod yet.
    '{ apiGroups: [""], resources: [pods], verbs: [create, get, list, watch] }',
    '{ apiGroups: [apps], resources: [deployments/finalizers], verbs: [update] }',
  );
  const template = { metadata: { labels: { a: 'b' } }, spec: POD.spec };
  const { metadata } = await client.create(DEPLOYMENTS, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: POD.metadata,
    spec: { selector: { matchLabels: { a: 'b' } }, template },
  });
  const { uid } = metadata;
  const owner = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'a', uid };
  await client.create(PODS, {
    ...POD,
    metadata: { ...POD.metadata, ownerReferences: [{ ...owner, blockOwnerDeletion: true }] },
  });
  const involvedObject = { kind: 'Pod', namespace: 'default', name: 'a' };
  await client.create(EVENTS, { ...POD, kind: 'Event', spec: undefined, involvedObject } as never);
  const end = new AbortController();
  await client.watch(PODS, { signal: end.signal });
  end.abort();
  await role.verify();
});

test('needs the patch that OwnedObjects sends after a restart, but for kinds that it only creates', async (context) => {
  const group =
    '{ apiGroups: [""], resources: [configmaps, pods], verbs: [get, list, watch, create';
  const missing = await start(context, `${group}] }`);
  const owner = { apiVersion: 'v1', kind: 'Node', name: 'a', uid: 'a', controller: true };
  const use = async (client: HttpClient) => {
    const options = { fieldManager: 'operator' };
    const metadata = { namespace: 'default', name: 'a', ownerReferences: [owner] };
    await client.create(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata }, options);
    await client.create(PODS, { ...POD, metadata }, options);
    for (const resource of [CONFIG_MAPS, PODS]) {
      const end = new AbortController();
      await client.watch(resource, { signal: end.signal });
      end.abort();
    }
  };
  await use(missing.client);
  await assert.rejects(missing.role.verify(), (error: Error) => {
    assert.deepEqual(error.message.match(/missing: .*|not needed: .*/g), [
      'missing: patch configmaps',
    ]);
    return true;
  });
});

test('needs the verbs bind and escalate only for what the role does not permit itself', async (context) => {
  const rbac = 'apiGroups: [rbac.authorization.k8s.io]';
  const own = `{ ${rbac}, resources: [rolebindings, clusterroles], verbs: [create] }`;
  const pods = '{ apiGroups: [""], resources: [pods], verbs: [list] }';
  const binding = (role: string) => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { namespace: 'default', name: role },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
  });
  const roleWith = (name: string, resource: string) => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name },
    rules: [{ apiGroups: [''], resources: [resource], verbs: ['list'] }],
  });
  const use = async ({ client }: { client: HttpClient }) => {
    await client.list(PODS);
    await client.create(CLUSTER_ROLES, roleWith('pods', 'pods'));
    await client.create(ROLE_BINDINGS, binding('view'));
    await client.create(CLUSTER_ROLES, roleWith('services', 'services'));
  };
  const lacking = await start(context, own, pods);
  await assert.rejects(use(lacking), /not currently held/);
  // The 403 has a line for each rule of `view`.
  assert.match(lacking.denied.at(-1) ?? '', /not currently held:[^\n]* and \d\d more$/);
  await assert.rejects(lacking.client.create(CLUSTER_ROLES, roleWith('s', 'services')));
  await assert.rejects(lacking.role.verify(), (error: Error) => {
    const { message } = error;
    assert.match(message, /missing: bind clusterroles\.rbac\.authorization\.k8s\.io view\n/);
    assert.match(message, /missing: escalate clusterroles\.rbac\.authorization\.k8s\.io\n/);
    return true;
  });
  const [bind, escalate] = [
    `{ ${rbac}, resources: [clusterroles], resourceNames: [view], verbs: [bind] }`,
    `{ ${rbac}, resources: [clusterroles], verbs: [escalate] }`,
  ];
  const sufficient = await start(context, own, pods, bind, escalate);
  await use(sufficient);
  await sufficient.role.verify();
  const text = roleText('operator', [own, pods, bind]);
  const wanted = permissionsOf([
    { verbs: ['bind'], apiGroups: ['a'], resources: ['b'], resourceNames: ['c', 'd:e'] },
  ]);
  const written = withPermissions(text, wanted);
  assert.match(written, /resources: \[b\]\n {4}resourceNames: \[c, d:e\]\n {4}verbs: \[bind\]/);
  assert.equal(withPermissions(written, wanted), written);
});

describe('a client that impersonates', () => {
  const legacy = (group: string, resource: string, ...names: readonly string[]) =>
    `{ apiGroups: ['${group}'], resources: [${resource}], resourceNames: ['${names.join("', '")}'], verbs: [impersonate] }`;
  const authentication = 'authentication.k8s.io';
  const cases: [
    title: string,
    headers: Record<string, string>,
    rules: string[],
    missing: string[],
  ][] = [
    [
      'a user',
      { 'impersonate-user': 'alice' },
      [legacy('', 'users', 'alice')],
      ['impersonate users alice'],
    ],
    [
      'a ServiceAccount',
      { 'impersonate-user': 'system:serviceaccount:team:deployer' },
      [legacy('', 'serviceaccounts', 'deployer')],
      ['impersonate serviceaccounts deployer'],
    ],
    [
      'a user with groups, a uid and an extra field',
      {
        'impersonate-user': 'alice',
        'impersonate-group': 'developers, testers',
        'impersonate-uid': '17',
        'impersonate-extra-reason': 'on call',
      },
      [
        legacy('', 'users', 'alice'),
        legacy('', 'groups', 'developers', 'testers'),
        legacy(authentication, 'uids', '17'),
        legacy(authentication, 'userextras/reason', 'on call'),
      ],
      [
        'impersonate users alice',
        'impersonate groups developers',
        'impersonate groups testers',
        `impersonate uids.${authentication} 17`,
        `impersonate userextras.${authentication}/reason on call`,
      ],
    ],
  ];
  for (const [title, headers, rules, missing] of cases) {
    it(`needs the verb impersonate for ${title}`, async (context) => {
      const as = (handler: HttpHandler) =>
        new HttpClient({
          handler: (request) =>
            handler({ ...request, headers: { ...request.headers, ...headers } }),
          server: 'https://test',
        });
      const lacking = await start(context);
      await assert.rejects(as(lacking.handler).list(PODS), (error) =>
        isApiError(error, 'forbidden'),
      );
      assert.match(lacking.denied[0] ?? '', /GET \S+: .* cannot impersonate/);
      await assert.rejects(lacking.role.verify(), (error: Error) => {
        const found = [...error.message.matchAll(/ {2}missing: (.*)/g)].map(([, line]) => line);
        assert.deepEqual(new Set(found), new Set(missing));
        return true;
      });
      const text = withPermissions(roleText('operator', []), new Set(missing));
      assert.equal(withPermissions(text, new Set(missing)), text);

      const sufficient = await start(context, ...rules);
      const { 'impersonate-user': user = '' } = headers;
      await grantPods(sufficient.server, user);
      await as(sufficient.handler).list(PODS);
      await sufficient.role.verify();
    });
  }

  it('may have the permissions of one mode instead', async (context) => {
    const alice = { 'impersonate-user': 'alice' };
    const { server, handler, role } = await start(
      context,
      `{ apiGroups: [${authentication}], resources: [users], resourceNames: [alice], verbs: ['impersonate:user-info'] }`,
      `{ apiGroups: [''], resources: [pods], verbs: ['impersonate-on:user-info:get'] }`,
    );
    await grantPods(server, 'alice');
    const response = await handler({
      method: 'GET',
      path: '/api/v1/namespaces/default/pods/a',
      headers: alice,
    });
    assert.equal(response.status, 404);
    await role.verify();
  });
});

/** Permits a user to read Pods. */
async function grantPods(server: ApiServer, user: string): Promise<void> {
  const apiVersion = 'rbac.authorization.k8s.io/v1';
  const metadata = { name: 'pods' };
  const client = new HttpClient({ handler: server.handler, server: 'https://test' });
  const rules = [{ apiGroups: [''], resources: ['pods'], verbs: ['get', 'list'] }];
  await client.create(CLUSTER_ROLES, { apiVersion, kind: 'ClusterRole', metadata, rules });
  await client.create(CLUSTER_ROLE_BINDINGS, {
    apiVersion,
    kind: 'ClusterRoleBinding',
    metadata,
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'pods' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
  });
}

test('does not accept a file without a ClusterRole, or without a ServiceAccount', async (context) => {
  const { write } = await start(context);
  const [role = '', binding = ''] = roleText('a', []).split('---\n');
  assert.throws(
    () => new TestedRole(write('a.yaml', binding)),
    /has 0 ClusterRoles instead of one/,
  );
  assert.throws(() => new TestedRole(write('b.yaml', role)), /binds no ServiceAccount/);
});

test('writes the rules of a role, and keeps all other text', () => {
  const text = roleText('operator', ['{ apiGroups: [""], resources: [pods], verbs: [get, list] }']);
  const same = new Set(['list pods', 'get pods']);
  assert.equal(withPermissions(text, same), text, 'with comments in the rules');
  const wanted = new Set([
    'list pods',
    'get pods',
    'get services',
    'list services',
    'get /metrics',
  ]);
  for (const verb of ['watch', 'patch', 'get']) wanted.add(`${verb} deployments.apps/status`);
  const written = withPermissions(text, wanted);
  assert.equal(
    written.slice(written.indexOf('rules:'), written.indexOf('---')),
    [
      'rules:',
      "  - apiGroups: ['']",
      '    resources: [pods, services]',
      '    verbs: [get, list]',
      '  - apiGroups: [apps]',
      '    resources: [deployments/status]',
      '    verbs: [get, watch, patch]',
      '  - nonResourceURLs: [/metrics]',
      '    verbs: [get]',
      '',
    ].join('\n'),
  );
  assert.equal(written.split('---\n')[1], text.split('---\n')[1]);
  assert.match(written, /^# Comment of operator\.\n/);
  assert.equal(withPermissions(written, wanted), written);
  assert.deepEqual(permissionsOf([]), new Set());
});

test('two roles of one ServiceAccount on one server have the permissions of their own, and report denied calls', async (context) => {
  const pods = '{ apiGroups: [""], resources: [pods], verbs: [create] }';
  const { role, write } = await start(context, pods);
  const shared = '{ apiGroups: [""], resources: [events], verbs: [create] }';
  const events = write('events.yaml', roleText('events', [shared]));
  const other = new TestedRole(write('other.yaml', roleText('other', [pods])), [events]);
  const server = new ApiServer();
  const denied: string[] = [];
  const clientOf = async (each: TestedRole) => {
    const handler = await each.handler(server, (line) => denied.push(line));
    return new HttpClient({ handler, server: 'https://test' });
  };
  const first = await clientOf(role);
  const second = await clientOf(other);
  await first.create(PODS, POD);
  for (let times = 0; times < 2; times += 1) {
    await assert.rejects(second.list(DEPLOYMENTS), (error) => isApiError(error, 'forbidden'));
  }
  // This rejection is not due to the role.
  const namespace = { name: 'ending', finalizers: ['test/keep'] };
  const admin = new HttpClient({ handler: server.handler, server: 'https://test' });
  await admin.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: namespace });
  await admin.delete(NAMESPACES, namespace);
  const late = { ...POD, metadata: { ...POD.metadata, namespace: 'ending' } };
  await assert.rejects(first.create(PODS, late), (error) => isApiError(error, 'forbidden'));
  const involvedObject = { kind: 'Pod', namespace: 'default', name: 'a' };
  await second.create(EVENTS, { ...POD, kind: 'Event', spec: undefined, involvedObject } as never);
  assert.equal(denied.length, 1);
  assert.match(denied[0] ?? '', /other\.yaml does not permit GET \/apis\/apps\/v1\/deployments$/);
  await role.verify();
  await assert.rejects(
    other.verify(),
    /missing: list deployments\.apps\n {2}not needed: create pods/,
  );
});
