import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Api, assertRejected } from './api.ts';
import { configMap, configMaps, GROUP, widget, widgetCrd, widgets } from './objects.ts';

let api: Api;

before(async () => {
  api = await Api.start();
  await api.install(widgetCrd());
});

after(() => api.close());

const OTHER_UID = '11111111-1111-1111-1111-111111111111';
const STALE =
  'the object has been modified; please apply your changes to the latest version and try again';

test('an update with an outdated resourceVersion is a conflict', async () => {
  const space = await api.namespace();
  const path = `${configMaps(space)}/a`;
  const first = await api.made(api.post(configMaps(space), configMap('a')));
  await api.made(api.patch(path, { data: { a: '2' } }));
  const replies = [
    await api.put(path, { ...first, data: { a: '3' } }),
    await api.patch(path, {
      metadata: { resourceVersion: first.metadata.resourceVersion },
      data: { a: '3' },
    }),
  ];
  for (const reply of replies) {
    assertRejected(reply, {
      code: 409,
      reason: 'Conflict',
      message: `Operation cannot be fulfilled on configmaps "a": ${STALE}`,
      details: { name: 'a', kind: 'configmaps' },
    });
  }
  assert.deepEqual((await api.get(path)).body.data, { a: '2' });
});

test('a conflict of a custom resource names its group', async () => {
  const space = await api.namespace();
  const path = `${widgets(space)}/a`;
  const first = await api.made(api.post(widgets(space), widget('a')));
  await api.made(api.patch(path, { spec: { size: 2 } }));
  for (const where of [path, `${path}/status`]) {
    assertRejected(await api.put(where, first), {
      code: 409,
      reason: 'Conflict',
      message: `Operation cannot be fulfilled on widgets.${GROUP} "a": ${STALE}`,
      details: { name: 'a', group: GROUP, kind: 'widgets' },
    });
  }
});

test('resourceVersion is optional in updates of built-in kinds and required for custom resources', async () => {
  const space = await api.namespace();
  await api.made(api.post(configMaps(space), configMap('a')));
  const updated = await api.made(api.put(`${configMaps(space)}/a`, configMap('a', { b: '2' })));
  assert.deepEqual(updated.data, { b: '2' });

  await api.made(api.post(widgets(space), widget('a')));
  for (const path of [`${widgets(space)}/a`, `${widgets(space)}/a/status`]) {
    assertRejected(await api.put(path, widget('a', { color: 'blue' })), {
      code: 422,
      reason: 'Invalid',
      message:
        /"a" is invalid: metadata\.resourceVersion: Invalid value: 0: must be specified for an update$/,
      causes: [['metadata.resourceVersion', 'Invalid value: 0: must be specified for an update']],
    });
  }
});

test('an update with the current resourceVersion succeeds', async () => {
  const space = await api.namespace();
  const path = `${widgets(space)}/a`;
  const first = await api.made(api.post(widgets(space), widget('a')));
  const second = await api.made(api.put(path, { ...first, spec: { color: 'blue' } }));
  assert.deepEqual(second.spec, { color: 'blue', size: 1 });
  assert.ok(Number(second.metadata.resourceVersion) > Number(first.metadata.resourceVersion));
});

test('an update of an object that was re-created is a conflict', async () => {
  const space = await api.namespace();
  const path = `${configMaps(space)}/a`;
  const { metadata } = await api.made(api.post(configMaps(space), configMap('a')));
  const reply = await api.put(path, configMap('a', {}, { uid: OTHER_UID }));
  assertRejected(reply, {
    code: 409,
    reason: 'Conflict',
    message: `Operation cannot be fulfilled on configmaps "a": StorageError: invalid object, Code: 4, Key: /registry/configmaps/${space}/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: ${OTHER_UID}, UID in object meta: ${metadata.uid}`,
    details: { name: 'a', kind: 'configmaps' },
  });
});

test('a creation with a resourceVersion is rejected', async () => {
  const path = configMaps(await api.namespace());
  assertRejected(await api.post(path, configMap('a', {}, { resourceVersion: '5' })), {
    code: 500,
    message: 'resourceVersion should not be set on objects to be created',
  });
});

test('a resourceVersion that is not a number is rejected', async () => {
  const space = await api.namespace();
  await api.made(api.post(configMaps(space), configMap('a')));
  const reply = await api.put(
    `${configMaps(space)}/a`,
    configMap('a', {}, { resourceVersion: 'x' }),
  );
  assertRejected(reply, {
    code: 500,
    message: 'strconv.ParseUint: parsing "x": invalid syntax',
  });
});

test('the scale has the resourceVersion of its object', async () => {
  const space = await api.namespace();
  const path = `${widgets(space)}/a/scale`;
  await api.made(api.post(widgets(space), widget('a')));
  const scale = await api.made(api.get(path));
  await api.made(api.patch(`${widgets(space)}/a`, { spec: { size: 2 } }));
  const { status, body } = await api.put(path, { ...scale, spec: { replicas: 5 } });
  assert.deepEqual([status, body.reason], [409, 'Conflict']);
});

test('an update of a deleted Lease does not create it', async () => {
  const space = await api.namespace();
  const leases = `/apis/coordination.k8s.io/v1/namespaces/${space}/leases`;
  const lease = {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'a' },
    spec: { holderIdentity: 'me', renewTime: '2026-01-01T00:00:00.000000Z' },
  };
  const first = await api.made(api.post(leases, lease));
  await api.delete(`${leases}/a`);
  const { uid } = first.metadata;
  assertRejected(await api.put(`${leases}/a`, first), {
    code: 409,
    reason: 'Conflict',
    message: `Operation cannot be fulfilled on leases.coordination.k8s.io "a": StorageError: invalid object, Code: 4, Key: /registry/leases/${space}/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: ${uid}, UID in object meta: `,
    details: { name: 'a', group: 'coordination.k8s.io', kind: 'leases' },
  });
  const again = await api.put(`${leases}/a`, lease);
  assert.equal(again.status, 201, 'created without a uid');
  assert.notEqual(again.body.metadata.uid, uid);
});
