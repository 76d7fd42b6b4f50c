import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Api, assertRejected, namesIn } from './api.ts';
import { configMap, configMaps, GROUP, pod, pods, widget, widgetCrd, widgets } from './objects.ts';
import { skipBefore } from '../support/skip.ts';

let api: Api;

before(async () => {
  api = await Api.start();
  await api.install(widgetCrd());
  path = configMaps(await api.namespace());
});

after(() => api.close());

const OTHER_UID = '11111111-1111-1111-1111-111111111111';
/** Path of the ConfigMaps in this file. */
let path: string;

test('an object without finalizers is deleted at once; the response contains its uid', async () => {
  const { metadata } = await api.made(api.post(path, configMap('gone')));
  const { status, body } = await api.delete(`${path}/gone`);
  assert.equal(status, 200);
  assert.deepEqual(body, {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Success',
    details: { name: 'gone', kind: 'configmaps', uid: metadata.uid },
  });
  assert.equal((await api.get(`${path}/gone`)).status, 404);
});

test('a finalizer delays the deletion until it is removed', async () => {
  const at = `${path}/held`;
  const draft = configMap('held', undefined, { finalizers: ['example.com/hold'] });
  const { metadata } = await api.made(api.post(path, draft));
  const deleted = await api.made(api.delete(at));
  assert.equal(deleted.kind, 'ConfigMap');
  assert.ok(deleted.metadata.deletionTimestamp);
  assert.equal(deleted.metadata.deletionGracePeriodSeconds, 0);
  assert.notEqual(deleted.metadata.resourceVersion, metadata.resourceVersion);

  const again = await api.made(api.delete(at));
  assert.equal(again.metadata.resourceVersion, deleted.metadata.resourceVersion);
  const more = { metadata: { finalizers: ['example.com/hold', 'example.com/more'] } };
  assertRejected(await api.patch(at, more), {
    code: 422,
    reason: 'Invalid',
    message:
      'ConfigMap "held" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"example.com/more"}',
  });
  const changed = await api.made(api.patch(at, { data: { b: '2' } }));
  assert.deepEqual(changed.data, { a: '1', b: '2' });

  const released = await api.made(api.patch(at, { metadata: { finalizers: null } }));
  assert.equal(released.metadata.finalizers, undefined);
  assert.equal((await api.get(at)).status, 404);
  const watch = await api.watch(
    `${path}?resourceVersion=${metadata.resourceVersion}&fieldSelector=metadata.name=held`,
  );
  assert.deepEqual(await watch.nextInShort(3), ['MODIFIED held', 'MODIFIED held', 'DELETED held']);
});

test('a deletion increments the generation', async () => {
  const at = widgets('default');
  const draft = widget('counted', undefined, { finalizers: ['example.com/hold'] });
  await api.made(api.post(at, draft));
  const deleted = await api.made(api.delete(`${at}/counted`));
  assert.equal(deleted.metadata.generation, 2);
  const again = await api.made(api.delete(`${at}/counted`));
  assert.equal(again.metadata.generation, 2, 'once');
  await api.made(api.patch(`${at}/counted`, { metadata: { finalizers: null } }));
  await api.made(api.post(at, widget('counted')));
  const { details } = await api.made(api.delete(`${at}/counted`));
  assert.deepEqual([details.kind, details.group], ['widgets', GROUP]);
});

test('foreground and orphan deletion add finalizers', async () => {
  const policies: [object, string][] = [
    [{ propagationPolicy: 'Foreground' }, 'foregroundDeletion'],
    [{ propagationPolicy: 'Orphan' }, 'orphan'],
    [{ orphanDependents: true }, 'orphan'],
  ];
  for (const [index, [options, finalizer]] of policies.entries()) {
    await api.made(api.post(path, configMap(`policy-${index}`)));
    const deleted = await api.made(api.delete(`${path}/policy-${index}`, options));
    assert.deepEqual(deleted.metadata.finalizers, [finalizer]);
    assert.ok(deleted.metadata.deletionTimestamp);
    // A later background deletion removes the finalizer.
    const background = await api.delete(`${path}/policy-${index}?propagationPolicy=Background`);
    assert.equal(background.body.status, 'Success');
  }
});

test('a Job keeps the policy of its first deletion', async () => {
  const jobs = path.replace(/^\/api\/v1(.*)configmaps$/, '/apis/batch/v1$1jobs');
  const template = { spec: { containers: [{ name: 'a', image: 'a' }], restartPolicy: 'Never' } };
  const job = { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'a' }, spec: { template } };
  await api.made(api.post(jobs, job));
  const finalizers = async (query: string) =>
    (await api.made(api.delete(`${jobs}/a${query}`))).metadata.finalizers;
  assert.deepEqual(await finalizers('?dryRun=All'), ['orphan']);
  assert.deepEqual(await finalizers('?propagationPolicy=Foreground'), ['foregroundDeletion']);
  assert.deepEqual(await finalizers(''), ['foregroundDeletion']);
  await api.delete(`${jobs}/a?propagationPolicy=Background`);
});

test('invalid deletion options are rejected', skipBefore(35), async () => {
  await api.made(api.post(path, configMap('sense')));
  assertRejected(await api.delete(`${path}/sense`, { propagationPolicy: 'Odd' }), {
    code: 422,
    reason: 'Invalid',
    message:
      'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Odd": supported values: "Foreground", "Background", "Orphan", "nil"',
  });
  const both = { orphanDependents: true, propagationPolicy: 'Orphan' };
  assertRejected(await api.delete(`${path}/sense`, both), {
    code: 422,
    reason: 'Invalid',
    message:
      'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set',
  });
  assertRejected(await api.delete(`${path}/sense`, configMap('sense')), {
    code: 400,
    reason: 'BadRequest',
    message: /^no kind "ConfigMap" is registered for version "v1" in scheme/,
  });
  assert.equal((await api.get(`${path}/sense`)).status, 200);
});

test('preconditions restrict a deletion to a uid or a resourceVersion', async () => {
  const { metadata } = await api.made(api.post(path, configMap('bound')));
  assertRejected(await api.delete(`${path}/bound`, { preconditions: { uid: OTHER_UID } }), {
    code: 409,
    reason: 'Conflict',
    message: `Operation cannot be fulfilled on ConfigMap "bound": the UID in the precondition (${OTHER_UID}) does not match the UID in record (${metadata.uid}). The object might have been deleted and then recreated`,
    details: { name: 'bound', kind: 'ConfigMap' },
  });
  assertRejected(await api.delete(`${path}/bound`, { preconditions: { resourceVersion: '1' } }), {
    code: 409,
    reason: 'Conflict',
    message: `Operation cannot be fulfilled on ConfigMap "bound": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (${metadata.resourceVersion}). The object might have been modified`,
  });
  const { uid, resourceVersion } = metadata;
  for (const preconditions of [{ uid: '' }, { resourceVersion: '' }]) {
    assert.equal((await api.delete(`${path}/bound`, { preconditions })).status, 409);
  }
  await api.made(api.delete(`${path}/bound`, { preconditions: { uid, resourceVersion } }));
});

test('deletecollection deletes the selected objects and returns them', async () => {
  const at = configMaps(await api.namespace());
  for (const [name, tier] of [
    ['a', 'x'],
    ['b', 'x'],
    ['c', 'y'],
  ] as const) {
    await api.made(api.post(at, configMap(name, {}, { labels: { tier } })));
  }
  const { status, body } = await api.delete(`${at}?labelSelector=tier%3Dx`);
  assert.deepEqual([status, body.kind, namesIn(body)], [200, 'ConfigMapList', ['a', 'b']]);
  assert.deepEqual(namesIn((await api.get(at)).body), ['c']);
});

test('deletecollection across all namespaces is not supported', async () => {
  assertRejected(await api.delete('/api/v1/configmaps'), {
    code: 405,
    reason: 'MethodNotAllowed',
    message: 'the server does not allow this method on the requested resource',
    details: {},
  });
});

test('a scheduled pod has a grace period, which can only be shortened', async () => {
  const at = pods(await api.namespace());
  const draft = pod('p');
  draft.spec.nodeName = 'n';
  await api.made(api.post(at, draft));
  const seconds = async (reply: ReturnType<Api['delete']>) =>
    (await api.made(reply)).metadata.deletionGracePeriodSeconds;
  assert.equal(await seconds(api.delete(`${at}/p`)), 30);
  assert.equal(await seconds(api.delete(`${at}/p`, { gracePeriodSeconds: 5 })), 5);
  assert.equal(await seconds(api.delete(`${at}/p`, { gracePeriodSeconds: 50 })), 5);
  assert.equal((await api.get(`${at}/p`)).status, 200);
  assert.equal(await seconds(api.delete(`${at}/p?gracePeriodSeconds=0`)), 0);
  assert.equal((await api.get(`${at}/p`)).status, 404);
});

test('an unscheduled pod is deleted at once', async () => {
  const at = pods(await api.namespace());
  const { resourceVersion } = (await api.get(at)).body.metadata;
  await api.made(api.post(at, pod('p')));
  const deleted = await api.made(api.delete(`${at}/p`));
  assert.deepEqual([deleted.kind, deleted.metadata.name], ['Pod', 'p']);
  assert.ok(deleted.metadata.deletionTimestamp);
  assert.equal(deleted.metadata.deletionGracePeriodSeconds, 0);
  assert.equal((await api.get(`${at}/p`)).status, 404);
  const watch = await api.watch(`${at}?resourceVersion=${resourceVersion}`);
  assert.deepEqual(await watch.nextInShort(3), ['ADDED p', 'MODIFIED p', 'DELETED p']);
});

test('deletecollection returns the objects as they were before', async () => {
  const home = configMaps(await api.namespace());
  const held = configMap('held', {}, { finalizers: ['example.com/hold'] });
  const { metadata } = await api.made(api.post(home, held));
  const { items } = await api.made(api.delete(home));
  assert.deepEqual(
    [items[0].metadata.resourceVersion, items[0].metadata.deletionTimestamp],
    [metadata.resourceVersion, undefined],
  );
});

test('a name is taken until its object is deleted', async () => {
  const home = configMaps(await api.namespace());
  const held = configMap('held', {}, { finalizers: ['example.com/hold'] });
  await api.made(api.post(home, held));
  await api.made(api.delete(`${home}/held`));
  const { body } = await api.post(home, held);
  assert.equal(body.message, 'object is being deleted: configmaps "held" already exists');
});

test('a deletion of an Event ignores its propagation policy', async () => {
  const space = await api.namespace();
  const events = `/api/v1/namespaces/${space}/events`;
  const event = { metadata: { name: 'e' }, involvedObject: { namespace: space } };
  await api.made(api.post(events, event));
  const { status, body } = await api.delete(`${events}/e?propagationPolicy=Orphan`);
  assert.deepEqual([status, body.status], [200, 'Success']);
  assert.equal((await api.get(`${events}/e`)).status, 404);
});
