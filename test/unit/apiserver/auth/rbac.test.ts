import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { missingRules } from '../../../../src/apiserver/auth/privilege-escalation.ts';
import type { PolicyRule } from '../../../../src/api/policy-rule.ts';
import { Api, CONFIG_MAPS } from '../api-client.ts';
import type { Json } from '../api-client.ts';

const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const ROLES = `${RBAC}/clusterroles`;
const BINDINGS = `${RBAC}/clusterrolebindings`;
const GROUP = 'rbac.authorization.k8s.io';

const READ = { verbs: ['list'], apiGroups: [''], resources: ['configmaps'] };

const clusterRole = (name: string, rules: readonly Json[], labels: Json = {}, select?: Json) => ({
  apiVersion: `${GROUP}/v1`,
  kind: 'ClusterRole',
  metadata: { name, labels },
  rules,
  ...(select && { aggregationRule: { clusterRoleSelectors: [{ matchLabels: select }] } }),
});

const binding = (name: string, role: string, ...users: readonly string[]) => ({
  apiVersion: `${GROUP}/v1`,
  kind: 'ClusterRoleBinding',
  metadata: { name },
  roleRef: { apiGroup: GROUP, kind: 'ClusterRole', name: role },
  subjects: users.map((user) => ({ kind: 'User', apiGroup: GROUP, name: user })),
});

async function statusFor(api: Api, user: string): Promise<number> {
  return (await api.get(CONFIG_MAPS, { 'impersonate-user': user })).status;
}

async function rulesOf(api: Api, name: string): Promise<Json> {
  return (await api.get(`${ROLES}/${name}`)).body.rules;
}

test('a role without rules grants nothing', async () => {
  const api = new Api();
  const { rules: _, ...role } = clusterRole('empty', []);
  await api.send('POST', ROLES, { ...role, rules: null });
  await api.send('POST', BINDINGS, binding('jane', 'empty', 'jane'));
  assert.equal(await statusFor(api, 'jane'), 403);
});

test('a binding that a restore removes grants nothing', async () => {
  const api = new Api();
  await api.send('POST', ROLES, clusterRole('reader', [READ]));
  const snapshot = api.server.faults.snapshot();
  await api.send('POST', BINDINGS, binding('jane', 'reader', 'jane'));
  assert.equal(await statusFor(api, 'jane'), 200);
  api.server.faults.restore(snapshot);
  assert.equal(await statusFor(api, 'jane'), 403);
});

describe('an aggregated ClusterRole', () => {
  const second = { verbs: ['get'], apiGroups: [''], resources: ['pods'] };

  test('has the rules of the roles that its selector matches, also through other aggregated roles', async () => {
    const api = new Api();
    await api.send('POST', ROLES, clusterRole('top', [], {}, { to: 'top' }));
    await api.send('POST', ROLES, clusterRole('middle', [], { to: 'top' }, { to: 'middle' }));
    await api.send('POST', ROLES, clusterRole('a', [READ], { to: 'middle' }));
    await api.send('POST', ROLES, clusterRole('b', [second, READ], { to: 'top' }));
    assert.deepEqual(await rulesOf(api, 'middle'), [READ]);
    assert.deepEqual(await rulesOf(api, 'top'), [second, READ]);
    await api.send('POST', BINDINGS, binding('jane', 'top', 'jane'));
    assert.equal(await statusFor(api, 'jane'), 200);
    await api.send('DELETE', `${ROLES}/a`);
    await api.send('DELETE', `${ROLES}/b`);
    assert.deepEqual(await rulesOf(api, 'top'), []);
    assert.equal(await statusFor(api, 'jane'), 403);
  });

  test('keeps rules that are written by hand only until they are aggregated again', async () => {
    const api = new Api();
    await api.send('POST', ROLES, clusterRole('top', [second], {}, { to: 'top' }));
    assert.deepEqual(await rulesOf(api, 'top'), []);
  });

  test('can be in a circle of roles', async () => {
    const api = new Api();
    const circle = ['a', 'b', 'c'];
    for (const [index, name] of circle.entries()) {
      const next = circle[(index + 1) % 3];
      await api.send('POST', ROLES, clusterRole(name, [READ], { is: name }, { is: next }));
    }
    const { status } = await api.send('POST', ROLES, clusterRole('d', [second], { is: 'a' }));
    assert.equal(status, 201);
    const rules = await rulesOf(api, 'c');
    assert.ok(rules.some((rule: Json) => rule.resources.includes('pods')));
  });
});

describe('the index of bindings', () => {
  test('follows changes of subjects, and a restored backup', async () => {
    const api = new Api();
    await api.send('POST', ROLES, clusterRole('reader', [READ]));
    await api.send('POST', BINDINGS, binding('readers', 'reader', 'jane', 'joe'));
    const backup = api.server.faults.snapshot();
    assert.deepEqual([await statusFor(api, 'jane'), await statusFor(api, 'joe')], [200, 200]);
    await api.send('PUT', `${BINDINGS}/readers`, binding('readers', 'reader', 'joe'));
    assert.deepEqual([await statusFor(api, 'jane'), await statusFor(api, 'joe')], [403, 200]);
    await api.send('DELETE', `${BINDINGS}/readers`);
    assert.deepEqual([await statusFor(api, 'jane'), await statusFor(api, 'joe')], [403, 403]);
    api.server.faults.restore(backup);
    assert.deepEqual([await statusFor(api, 'jane'), await statusFor(api, 'joe')], [200, 200]);
    api.server.faults.wipe();
    assert.deepEqual([await statusFor(api, 'jane'), await statusFor(api, 'joe')], [403, 403]);
  });

  test('is not changed by a dry run', async () => {
    const api = new Api();
    await api.send('POST', ROLES, clusterRole('reader', [READ]));
    await api.send('POST', `${BINDINGS}?dryRun=All`, binding('readers', 'reader', 'jane'));
    assert.equal(await statusFor(api, 'jane'), 403);
  });
});

test('rules cover rules with fewer verbs, names, subresources and paths', () => {
  const rule = (verbs: string[], resources: string[], resourceNames?: string[]): PolicyRule => ({
    verbs,
    apiGroups: ['apps'],
    resources,
    ...(resourceNames && { resourceNames }),
  });
  const paths = (...nonResourceURLs: string[]): PolicyRule => ({ verbs: ['get'], nonResourceURLs });
  for (const [held, wanted, expected] of [
    [rule(['get', 'list'], ['a', 'b']), rule(['get'], ['b', 'a']), 0],
    [rule(['get'], ['a']), rule(['get', 'list'], ['a', 'b']), 3],
    [rule(['*'], ['*']), rule(['get'], ['a/b']), 0],
    [rule(['get'], ['*/scale']), rule(['get'], ['a/scale', 'a', 'a/status']), 2],
    [rule(['get'], ['a'], ['x']), rule(['get'], ['a']), 1],
    [rule(['get'], ['a']), rule(['get'], ['a'], ['x']), 0],
    [rule(['get'], ['a'], ['x']), rule(['get'], ['a'], ['x', 'y']), 1],
    [{ ...rule(['get'], ['a']), apiGroups: [''] }, rule(['get'], ['a']), 1],
    [paths('/a/*', '/b'), paths('/a/b', '/b', '/b/c', '/a/*'), 1],
    [paths('*'), paths('/a'), 0],
    [rule(['*'], ['*']), paths('/a'), 1],
  ] as const) {
    const name = JSON.stringify([held, wanted]);
    assert.equal(missingRules([held], [wanted]).length, expected, name);
  }
});
