import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Api, assertRejected } from './api.ts';
import { configMap, configMaps } from './objects.ts';

let api: Api;

before(async () => {
  api = await Api.start();
  path = configMaps(await api.namespace());
});

after(() => api.close());

/** Path of the ConfigMaps in this file. */
let path: string;

test('a dry-run creation returns the object and stores nothing', async () => {
  const { status, body } = await api.post(`${path}?dryRun=All`, configMap('trial'));
  assert.equal(status, 201);
  assert.ok(body.metadata.uid);
  assert.equal(body.metadata.resourceVersion, undefined);
  assert.equal((await api.get(`${path}/trial`)).status, 404);
  assertRejected(await api.post(`${path}?dryRun=All`, configMap('Not_A_Name')), {
    code: 422,
    reason: 'Invalid',
    message: /^ConfigMap "Not_A_Name" is invalid: /,
  });
});

test('dry-run updates, patches and applies return the object and store nothing', async () => {
  const at = `${path}/kept`;
  const kept = await api.made(api.post(path, configMap('kept')));
  const replies = [
    await api.put(`${at}?dryRun=All`, configMap('kept', { b: '2' })),
    await api.patch(`${at}?dryRun=All`, { data: { a: null, b: '2' } }),
    await api.apply(at, 'm', configMap('kept', { b: '2' }), '&dryRun=All'),
  ];
  for (const { status, body } of replies) assert.deepEqual([status, body.data.b], [200, '2']);
  assert.deepEqual((await api.get(at)).body, kept);
  const applied = await api.apply(`${path}/new`, 'm', configMap('new'), '&dryRun=All');
  assert.equal(applied.status, 201);
  assert.equal((await api.get(`${path}/new`)).status, 404);
});

test('dry-run deletions return the object and delete nothing', async () => {
  const at = `${path}/alive`;
  const alive = await api.made(api.post(path, configMap('alive')));
  const replies = [
    await api.delete(`${at}?dryRun=All`),
    await api.delete(at, { dryRun: ['All'] }),
    await api.delete(at, { dryRun: ['All'], propagationPolicy: 'Foreground' }),
    await api.delete(`${path}?dryRun=All`),
  ];
  for (const { status } of replies) assert.equal(status, 200);
  assert.deepEqual((await api.get(at)).body, alive);
});

test('the only value of dryRun is All', async () => {
  await api.made(api.post(path, configMap('all')));
  const at = `${path}/all`;
  const refusals = [
    [await api.post(`${path}?dryRun=Some`, configMap('some')), 'CreateOptions'],
    [await api.put(`${at}?dryRun=Some`, configMap('all')), 'UpdateOptions'],
    [await api.patch(`${at}?dryRun=Some`, {}), 'PatchOptions'],
    [await api.delete(at, { dryRun: ['Some'] }), 'DeleteOptions'],
  ] as const;
  for (const [reply, options] of refusals) {
    assertRejected(reply, {
      code: 422,
      reason: 'Invalid',
      message: `${options}.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"`,
      details: {
        group: 'meta.k8s.io',
        kind: options,
        causes: [
          {
            reason: 'FieldValueNotSupported',
            message: 'Unsupported value: ["Some"]: supported values: "All"',
            field: 'dryRun',
          },
        ],
      },
    });
  }
  assert.equal((await api.get(`${path}/some`)).status, 404);
  assert.equal((await api.get(at)).status, 200);
});
