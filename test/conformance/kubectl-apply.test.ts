import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Json } from './api.ts';
import { Api, assertRejected } from './api.ts';
import { configMap, configMaps } from './objects.ts';

let api: Api;
let path: string;

before(async () => {
  api = await Api.start();
  path = configMaps(await api.namespace());
});

after(() => api.close());

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/** Creates an object as client-side `kubectl apply` does. */
async function applyOnClient(
  name: string,
  data: Json,
  lastApplied: Json = configMap(name, data),
): Promise<void> {
  const text = typeof lastApplied === 'string' ? lastApplied : `${JSON.stringify(lastApplied)}\n`;
  const created = configMap(name, data, { annotations: { [LAST_APPLIED]: text } });
  await api.made(api.post(`${path}?fieldManager=kubectl-client-side-apply`, created));
}

const applyOnServer = (name: string, data: Json, metadata: Json = {}, manager = 'kubectl') =>
  api.apply(`${path}/${name}`, manager, configMap(name, data, metadata));

const lastAppliedOf = ({ metadata }: Json): string => metadata.annotations?.[LAST_APPLIED];

const ownersOf = ({ metadata }: Json): Json =>
  Object.fromEntries(
    metadata.managedFields.map(({ manager, fieldsV1 }: Json) => [manager, fieldsV1['f:data']]),
  );

const conflictWith = (manager: string, field: string = '.data.a') => ({
  code: 409,
  reason: 'Conflict',
  message: `Apply failed with 1 conflict: conflict with "${manager}" using v1: ${field}`,
});

test('kubectl takes over fields from client-side apply and updates the annotation', async () => {
  await applyOnClient('over', { a: '1', b: '1' });
  const body = await api.made(applyOnServer('over', { a: '<2>', c: '3' }, { labels: { l: 'x' } }));
  assert.deepEqual(body.data, { a: '<2>', b: '1', c: '3' });
  assert.deepEqual(ownersOf(body), {
    kubectl: { 'f:a': {}, 'f:c': {} },
    'kubectl-client-side-apply': { '.': {}, 'f:b': {} },
  });
  assert.equal(
    lastAppliedOf(body),
    String.raw`{"apiVersion":"v1","data":{"a":"\u003c2\u003e","c":"3"},"kind":"ConfigMap","metadata":{"labels":{"l":"x"},"name":"over"}}` +
      '\n',
  );
});

test('an apply without changes writes nothing', async () => {
  await applyOnClient('same', { a: '1' });
  const first = await api.made(applyOnServer('same', { a: '2' }));
  const second = await api.made(applyOnServer('same', { a: '2' }));
  assert.equal(second.metadata.resourceVersion, first.metadata.resourceVersion);
});

test('fields that were changed after client-side apply conflict', async () => {
  await applyOnClient('edited', { a: '1', b: '1' });
  await api.made(api.patch(`${path}/edited?fieldManager=editor`, { data: { a: 'edited' } }));
  assertRejected(await applyOnServer('edited', { a: '2', b: '2' }), conflictWith('editor'));
});

test('other managers do not take over fields from client-side apply', async () => {
  await applyOnClient('other', { a: '1' });
  const rejected = conflictWith('kubectl-client-side-apply');
  assertRejected(await applyOnServer('other', { a: '2' }, {}, 'other'), rejected);
  await api.made(applyOnServer('other', { b: '2' }, {}, 'other'));
  assert.match(lastAppliedOf((await api.get(`${path}/other`)).body), /"a":"1"/);
});

test('an annotation that is invalid or of another version is not used', async () => {
  const rejected = conflictWith('kubectl-client-side-apply');
  await applyOnClient('invalid', { a: '1' }, 'not JSON');
  assertRejected(await applyOnServer('invalid', { a: '2' }), rejected);
  await applyOnClient(
    'version',
    { a: '1' },
    { apiVersion: 'v2', kind: 'ConfigMap', data: { a: '1' } },
  );
  assertRejected(await applyOnServer('version', { a: '2' }), rejected);
  await applyOnClient('untyped', { a: '1' }, { apiVersion: 'v1', kind: 'ConfigMap', data: [] });
  assertRejected(await applyOnServer('untyped', { a: '2' }), rejected);
});

test('the annotation itself cannot be applied over client-side apply', async () => {
  await applyOnClient('itself', { a: '1' });
  const applied = { annotations: { [LAST_APPLIED]: 'mine' } };
  assertRejected(
    await applyOnServer('itself', { a: '1' }, applied),
    conflictWith('kubectl-client-side-apply', `.metadata.annotations.${LAST_APPLIED}`),
  );
});

test('an annotation that would be too large is removed', async () => {
  await applyOnClient('large', { a: '1' });
  const body = await api.made(applyOnServer('large', { a: 'x'.repeat(270_000) }));
  assert.equal(lastAppliedOf(body), undefined);
});

test('a dry run leaves the annotation and the owners as they are', async () => {
  await applyOnClient('dry', { a: '1' });
  const dry = api.apply(`${path}/dry`, 'kubectl', configMap('dry', { a: '2' }), '&dryRun=All');
  assert.match(lastAppliedOf(await api.made(dry)), /"a":"2"/);
  assert.match(lastAppliedOf((await api.get(`${path}/dry`)).body), /"a":"1"/);
});
