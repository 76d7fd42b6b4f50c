import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ConnectionReset } from '../../../src/apiserver/http/faults.ts';
import { Api, CONFIG_MAPS, COUNTS, CRDS, apiWithCounts, configMap, count } from './api-client.ts';

/** etcd restored from a snapshot, or replaced by an empty one, while the API server was stopped. */
describe('a server restored from a snapshot', () => {
  const names = (body: { items: { metadata: { name: string } }[] }) =>
    body.items.map(({ metadata }) => metadata.name);

  async function restored() {
    const api = new Api();
    await api.post(CONFIG_MAPS, configMap('old'));
    const snapshot = api.server.faults.snapshot();
    const before = await api.get(`${CONFIG_MAPS}/old`);
    await api.patch(`${CONFIG_MAPS}/old`, { data: { a: '2' } });
    for (const name of ['b', 'c', 'd']) await api.post(CONFIG_MAPS, configMap(name));
    const lost = api.server.revision;
    const watch = await api.watch(CONFIG_MAPS);
    api.server.faults.restore(snapshot);
    return { api, snapshot, before, lost, watch };
  }

  test('has the objects and the revision of the snapshot, and continues from there', async () => {
    const { api, snapshot, before } = await restored();
    const { body } = await api.get(CONFIG_MAPS);
    assert.deepEqual(names(body), ['old']);
    assert.equal(body.metadata.resourceVersion, String(snapshot.revision));
    assert.deepEqual((await api.get(`${CONFIG_MAPS}/old`)).body, before.body);
    const created = await api.post(CONFIG_MAPS, configMap('new'));
    assert.equal(created.body.metadata.resourceVersion, String(snapshot.revision + 1));
    assert.equal((await api.get(CONFIG_MAPS)).body.items.length, 2);
  });

  test('can be restored from the same snapshot again', async () => {
    const { api, snapshot } = await restored();
    await api.delete(`${CONFIG_MAPS}/old`);
    api.server.faults.restore(snapshot);
    assert.deepEqual(names((await api.get(CONFIG_MAPS)).body), ['old']);
  });

  test('has broken all watches, and resumes none from before the snapshot', async () => {
    const { api, snapshot, watch } = await restored();
    await watch.said();
    assert.ok(watch.error instanceof ConnectionReset);
    const early = await api.watch(`${CONFIG_MAPS}?resourceVersion=${snapshot.revision - 1}`);
    const [event] = await early.events();
    assert.equal(event.object.code, 410);
  });

  test('accepts a watch from a lost revision and sends nothing, not even bookmarks', async () => {
    const { api, lost } = await restored();
    const query = `allowWatchBookmarks=true&resourceVersion=${lost}`;
    const watch = await api.watch(`${CONFIG_MAPS}?${query}`);
    await api.post(CONFIG_MAPS, configMap('new'));
    await api.clock.advance(10 * 60_000);
    assert.deepEqual(await watch.said(), []);
    while (api.server.revision < lost)
      await api.patch(`${CONFIG_MAPS}/new`, { data: { x: `${api.server.revision}` } });
    assert.deepEqual(await watch.said(), []);
    await api.post(CONFIG_MAPS, configMap('newer'));
    assert.deepEqual(await watch.said(), ['ADDED newer']);
    await watch.stop();
  });

  test('reports a lost revision as too large within a watch list', async () => {
    const { api, lost } = await restored();
    const query =
      'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';
    const streaming = api.watch(`${CONFIG_MAPS}?${query}&resourceVersion=${lost}`);
    await api.clock.advance(3000);
    const watch = await streaming;
    const [event] = await watch.events();
    assert.equal(event.type, 'ERROR');
    assert.equal(event.object.code, 504);
    assert.equal(event.object.details.causes[0].reason, 'ResourceVersionTooLarge');
    assert.equal(watch.ended, true);
  });

  test('serves the kinds whose CRDs are in the snapshot, and no others', async () => {
    const without = new Api();
    const empty = without.server.faults.snapshot();
    const api = await apiWithCounts();
    await api.post(COUNTS, count('a'));
    const snapshot = api.server.faults.snapshot();
    await api.delete(`${CRDS}/counts.demo.mark8s.io`);
    assert.equal((await api.get(COUNTS)).status, 404);
    api.server.faults.restore(snapshot);
    assert.deepEqual(names((await api.get(COUNTS)).body), ['a']);
    api.server.faults.restore(empty);
    assert.equal((await api.get(COUNTS)).status, 404);
  });

  test('wiped, has the namespaces of a new server, under new uids', async () => {
    const api = await apiWithCounts();
    const namespaces = async () => (await api.get('/api/v1/namespaces')).body;
    const before = await namespaces();
    api.server.faults.wipe();
    const after = await namespaces();
    assert.deepEqual(names(after), names(before));
    assert.notEqual(after.items[0].metadata.uid, before.items[0].metadata.uid);
    assert.ok(Number(after.metadata.resourceVersion) < Number(before.metadata.resourceVersion));
    assert.equal((await api.get(COUNTS)).status, 404);
    assert.deepEqual((await api.get(CRDS)).body.items, []);
    assert.equal((await api.post(CONFIG_MAPS, configMap('a'))).status, 201);
  });
});
