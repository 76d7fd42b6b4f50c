import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Api, assertRejected } from './api.ts';
import { configMap, configMaps, namespace, widget, widgetCrd, widgets } from './objects.ts';

let api: Api;

before(async () => {
  api = await Api.start();
  await api.install(widgetCrd());
});

after(() => api.close());

test('a missing namespace rejects creations and lists nothing', async () => {
  assertRejected(await api.post(configMaps('nowhere'), configMap('a')), {
    code: 404,
    reason: 'NotFound',
    message: 'namespaces "nowhere" not found',
    details: { name: 'nowhere', kind: 'namespaces' },
  });
  assertRejected(await api.get(`${configMaps('nowhere')}/a`), {
    code: 404,
    reason: 'NotFound',
    message: 'configmaps "a" not found',
  });
  const { status, body } = await api.get(configMaps('nowhere'));
  assert.deepEqual([status, body.items], [200, []]);
});

test('a namespace has a label with its name, and a finalizer in its spec', async () => {
  const name = await api.namespace();
  const { body } = await api.get(`/api/v1/namespaces/${name}`);
  assert.deepEqual(body.metadata.labels, { 'kubernetes.io/metadata.name': name });
  assert.deepEqual(body.spec, { finalizers: ['kubernetes'] });
  assert.deepEqual(body.status, { phase: 'Active' });
});

test('a terminating namespace rejects creations and accepts updates', async () => {
  const name = await api.namespace();
  const path = `/api/v1/namespaces/${name}`;
  await api.made(api.post(configMaps(name), configMap('a')));
  const deleted = await api.made(api.delete(path));
  assert.equal(deleted.kind, 'Namespace');
  assert.equal(deleted.status.phase, 'Terminating');
  assert.ok(deleted.metadata.deletionTimestamp);
  assert.equal(deleted.metadata.deletionGracePeriodSeconds, undefined);
  const late = [
    [await api.post(configMaps(name), configMap('late')), 'configmaps "late"'],
    [await api.apply(`${configMaps(name)}/late`, 'm', configMap('late')), 'configmaps "late"'],
    [await api.post(widgets(name), widget('late')), 'widgets.conformance.example.com "late"'],
  ] as const;
  for (const [reply, what] of late) {
    assertRejected(reply, {
      code: 403,
      reason: 'Forbidden',
      message: `${what} is forbidden: unable to create new content in namespace ${name} because it is being terminated`,
      causes: [['metadata.namespace', `namespace ${name} is being terminated`]],
    });
  }
  const changed = await api.made(api.patch(`${configMaps(name)}/a`, { data: { b: '2' } }));
  assert.deepEqual(changed.data, { a: '1', b: '2' });
  const again = await api.delete(path);
  assert.deepEqual([again.status, again.body.status.phase], [200, 'Terminating']);
});

test('a terminating namespace is deleted when its finalizer is removed', async () => {
  const name = await api.namespace();
  const path = `/api/v1/namespaces/${name}`;
  await api.made(api.delete(path));
  const finalized = await api.put(`${path}/finalize`, { ...namespace(name), spec: {} });
  assert.deepEqual([finalized.status, finalized.body.spec], [200, {}]);
  assertRejected(await api.get(path), {
    code: 404,
    reason: 'NotFound',
    message: `namespaces "${name}" not found`,
  });
});

test('system namespaces cannot be deleted', async () => {
  for (const name of ['default', 'kube-system', 'kube-public']) {
    assertRejected(await api.delete(`/api/v1/namespaces/${name}`), {
      code: 403,
      reason: 'Forbidden',
      message: `namespaces "${name}" is forbidden: this namespace may not be deleted`,
      details: { name, kind: 'namespaces' },
    });
  }
  assertRejected(await api.delete('/api/v1/namespaces'), {
    code: 405,
    reason: 'MethodNotAllowed',
    message: 'the server does not allow this method on the requested resource',
    details: {},
  });
});

test('the name of a namespace is a DNS label', async () => {
  assertRejected(await api.post('/api/v1/namespaces', namespace('a.b')), {
    code: 422,
    reason: 'Invalid',
    message:
      'Namespace "a.b" is invalid: metadata.name: Invalid value: "a.b": must not contain dots',
  });
});
