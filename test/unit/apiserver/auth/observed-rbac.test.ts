import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'yaml';
import { Api, CONFIG_MAPS } from '../api-client.ts';

const jane = { 'impersonate-user': 'jane' };

test('the observed role permits exactly the requests of the user', async () => {
  const api = new Api();
  const requests = [
    ['GET', '/api/v1/configmaps'],
    ['GET', '/api/v1/secrets'],
    ['GET', `${CONFIG_MAPS}/a`],
    ['GET', '/api/v1/namespaces/default/secrets/a'],
    ['DELETE', '/api/v1/namespaces/default/pods/a'],
    ['GET', '/apis/apps/v1/namespaces/default/deployments/a/scale'],
    ['GET', '/metrics'],
    ['GET', '/api'],
  ] as const;
  const statuses = async () =>
    Promise.all(
      requests.map(
        async ([method, path]) => (await api.send(method, path, undefined, jane)).status,
      ),
    );
  assert.equal((await statuses()).filter((status) => status === 403).length, 7);
  await api.send('GET', '/api/v1/nodes');
  const role = api.server.observedRole('jane');
  assert.deepEqual(role.rules, [
    { apiGroups: [''], resources: ['configmaps', 'secrets'], verbs: ['get', 'list'] },
    { apiGroups: [''], resources: ['pods'], verbs: ['delete'] },
    { apiGroups: ['apps'], resources: ['deployments/scale'], verbs: ['get'] },
    { nonResourceURLs: ['/metrics'], verbs: ['get'] },
  ]);
  const { text } = await api.get('/observed-rbac?user=jane');
  assert.deepEqual(parse(text), role);
  assert.equal((await api.get('/observed-rbac?user=jane', jane)).status, 403);

  const rbac = '/apis/rbac.authorization.k8s.io/v1';
  await api.send('POST', `${rbac}/clusterroles`, role);
  await api.send('POST', `${rbac}/clusterrolebindings`, {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: 'jane' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'jane' },
    subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'jane' }],
  });
  assert.ok(!(await statuses()).includes(403));
});
