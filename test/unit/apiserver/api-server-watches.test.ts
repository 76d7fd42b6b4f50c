import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ConnectionReset } from '../../../src/apiserver/http/faults.ts';
import { settle } from '../../../src/util/fake-clock.ts';
import { Api, CONFIG_MAPS, CRDS, COUNTS, apiWithCounts, configMap, count } from './api-client.ts';

const WATCH_LIST =
  'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';

async function apiWithMaps(...all: string[]): Promise<Api> {
  const api = new Api();
  for (const name of all) await api.post(CONFIG_MAPS, configMap(name));
  return api;
}

describe('watch', () => {
  test('without a revision sends all objects first, then changes', async () => {
    const api = await apiWithMaps('a', 'b');
    const watch = await api.watch(CONFIG_MAPS);
    assert.deepEqual(await watch.said(), ['ADDED a', 'ADDED b']);
    await api.post(CONFIG_MAPS, configMap('c'));
    await api.patch(`${CONFIG_MAPS}/a`, { data: { x: 'y' } });
    await api.delete(`${CONFIG_MAPS}/b`);
    assert.deepEqual(await watch.said(), ['ADDED c', 'MODIFIED a', 'DELETED b']);
    await watch.stop();
    assert.match(String(watch.error), /stopped by the test/);
    assert.equal(api.server.watches, 0);
  });

  test('events have complete objects; a deleted one has its last state and the revision of its deletion', async () => {
    const api = await apiWithMaps('a');
    const watch = await api.watch(CONFIG_MAPS);
    await api.delete(`${CONFIG_MAPS}/a`);
    const [added, deleted] = await watch.events();
    assert.equal(added.object.kind, 'ConfigMap');
    assert.equal(added.object.apiVersion, 'v1');
    assert.deepEqual(deleted.object.data, { a: '1' });
    assert.equal(deleted.object.metadata.resourceVersion, String(api.server.revision));
    await watch.stop();
  });

  test('from a revision sends later changes, each once and in order', async () => {
    const api = await apiWithMaps('a');
    const { revision } = api.server;
    await api.post(CONFIG_MAPS, configMap('b'));
    await api.delete(`${CONFIG_MAPS}/a`);
    const watch = await api.watch(`${CONFIG_MAPS}?resourceVersion=${revision}`);
    await api.post(CONFIG_MAPS, configMap('c'));
    assert.deepEqual(await watch.said(), ['ADDED b', 'DELETED a', 'ADDED c']);
    await watch.stop();
  });

  test('from an expired revision answers with one ERROR event', async () => {
    const api = await apiWithMaps('a');
    const { revision } = api.server;
    await api.post(CONFIG_MAPS, configMap('b'));
    api.server.faults.expireHistory();
    const watch = await api.watch(`${CONFIG_MAPS}?resourceVersion=${revision}`);
    const [event, ...rest] = await watch.events();
    assert.equal(event.type, 'ERROR');
    assert.equal(event.object.code, 410);
    assert.equal(event.object.reason, 'Expired');
    assert.equal(event.object.message, `too old resource version: ${revision} (${revision + 1})`);
    assert.deepEqual(rest, []);
    assert.equal(watch.ended, true);
    const current = await api.watch(`${CONFIG_MAPS}?resourceVersion=${revision + 1}`);
    assert.deepEqual(await current.said(), []);
    await current.stop();
  });

  test('from a future revision sends nothing until there are changes', async () => {
    const api = await apiWithMaps();
    const watch = await api.watch(`${CONFIG_MAPS}?resourceVersion=${api.server.revision + 1}`);
    await api.post(CONFIG_MAPS, configMap('a'));
    await api.post(CONFIG_MAPS, configMap('b'));
    assert.deepEqual(await watch.said(), ['ADDED b']);
    await watch.stop();
  });

  test('requested initial events end with a bookmark, before any change', async () => {
    const api = await apiWithMaps('a', 'b');
    const revision = String(api.server.revision);
    const watch = await api.watch(`${CONFIG_MAPS}?${WATCH_LIST}`);
    await api.post(CONFIG_MAPS, configMap('c'));
    const events = await watch.events();
    assert.deepEqual(
      events.map(({ type }) => type),
      ['ADDED', 'ADDED', 'BOOKMARK', 'ADDED'],
    );
    assert.deepEqual(events[2].object, {
      kind: 'ConfigMap',
      apiVersion: 'v1',
      metadata: {
        resourceVersion: revision,
        annotations: { 'k8s.io/initial-events-end': 'true' },
      },
    });
    await watch.stop();
  });

  test('bookmarks are sent about once a minute', async () => {
    const api = await apiWithMaps('a');
    const { revision } = api.server;
    const watch = await api.watch(
      `${CONFIG_MAPS}?resourceVersion=${revision}&allowWatchBookmarks=true&timeoutSeconds=200`,
    );
    const plain = await api.watch(`${CONFIG_MAPS}?resourceVersion=${revision}&timeoutSeconds=200`);
    await api.clock.advance(59_000);
    assert.deepEqual(await watch.said(), []);
    await api.post('/api/v1/namespaces', { metadata: { name: 'team' } });
    await api.clock.advance(1000);
    assert.deepEqual(await watch.said(), [`BOOKMARK ${revision + 1}`]);
    await api.clock.advance(138_000);
    assert.equal((await watch.said()).length, 3, 'at 120 s, at 180 s, and 2 s before the end');
    assert.equal(watch.ended, false);
    await api.clock.advance(2000);
    await settle();
    assert.equal(watch.ended, true);
    assert.deepEqual(await plain.said(), []);
    assert.equal(plain.ended, true);
    assert.equal(api.clock.pending, 0, 'no timer outlives its watch');
  });

  test('with a selector reports objects that start or stop matching as added or deleted', async () => {
    const api = await apiWithMaps();
    const label = (name: string, app: string | null) =>
      api.patch(`${CONFIG_MAPS}/${name}`, { metadata: { labels: { app } } });
    const watch = await api.watch(`${CONFIG_MAPS}?labelSelector=app%3Dx`);
    await api.post(CONFIG_MAPS, configMap('a'));
    assert.deepEqual(await watch.said(), []);
    await label('a', 'x');
    await api.patch(`${CONFIG_MAPS}/a`, { data: { b: '2' } });
    await label('a', 'y');
    const [added, modified, deleted] = await watch.events();
    assert.deepEqual([added.type, modified.type, deleted.type], ['ADDED', 'MODIFIED', 'DELETED']);
    assert.deepEqual(deleted.object.metadata.labels, { app: 'x' }, 'as it last matched');
    assert.equal(deleted.object.metadata.resourceVersion, String(api.server.revision));
    await watch.said();
    await api.delete(`${CONFIG_MAPS}/a`);
    assert.deepEqual(await watch.said(), [], 'it was gone from here already');
    await watch.stop();
  });

  test('of a namespace sends no events of others', async () => {
    const api = await apiWithMaps();
    await api.post('/api/v1/namespaces', { metadata: { name: 'team' } });
    const own = await api.watch(CONFIG_MAPS);
    const one = await api.watch('/api/v1/configmaps?fieldSelector=metadata.name%3Dtwo');
    await api.post(CONFIG_MAPS.replace('default', 'team'), configMap('one'));
    await api.post(CONFIG_MAPS.replace('default', 'team'), configMap('two'));
    assert.deepEqual(await own.said(), []);
    assert.deepEqual(await one.said(), ['ADDED two']);
    await own.stop();
    await one.stop();
  });

  test('a Table watch describes its columns once', async () => {
    const api = await apiWithMaps('a');
    const watch = await api.watch(CONFIG_MAPS, {
      accept: 'application/json;as=Table;v=v1;g=meta.k8s.io',
    });
    await api.post(CONFIG_MAPS, configMap('b'));
    const [first, second] = await watch.events();
    assert.equal(first.object.kind, 'Table');
    assert.ok(first.object.columnDefinitions.length > 0);
    assert.equal(second.object.columnDefinitions, null);
    assert.equal(second.object.rows[0].cells[0], 'b');
    await watch.stop();
  });

  test('watches of the same objects can have different representations', async () => {
    const api = await apiWithMaps();
    const whole = await api.watch(CONFIG_MAPS);
    const metadata = await api.watch(CONFIG_MAPS, {
      accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io',
    });
    await api.post(CONFIG_MAPS, configMap('a'));
    assert.deepEqual((await whole.events())[0].object.data, { a: '1' });
    assert.equal((await metadata.events())[0].object.data, undefined);
    await whole.stop();
    await metadata.stop();
  });

  test('a client can request objects without managedFields', async () => {
    const api = await apiWithMaps();
    const whole = await api.watch(CONFIG_MAPS);
    const accept = 'application/json;drop=spec.other+metadata.managedFields';
    const trimmed = await api.watch(CONFIG_MAPS, { accept });
    await api.post(CONFIG_MAPS, configMap('a'));
    const [event] = await whole.events();
    assert.ok(event.object.metadata.managedFields.length > 0);
    const { managedFields: _, ...metadata } = event.object.metadata;
    assert.deepEqual((await trimmed.events())[0].object, { ...event.object, metadata });
    await whole.stop();
    await trimmed.stop();
  });

  test('of a client that does not read ends, and its memory is bounded', async () => {
    const api = new Api({ watchBufferLimit: 10 });
    const response = await api.server.handler({
      method: 'GET',
      path: `${CONFIG_MAPS}?watch=true`,
      headers: {},
    });
    for (let index = 0; index < 12; index++) await api.post(CONFIG_MAPS, configMap(`m${index}`));
    assert.equal(api.server.watches, 0);
    const chunks = await Array.fromAsync(response.body);
    assert.deepEqual(chunks, []);
  });

  test('of a client that does not read ends when the history drops changes that were not sent', async () => {
    const api = new Api({ historyBytes: 1024 ** 2 });
    const { revision } = api.server;
    await api.post(CONFIG_MAPS, configMap('a'));
    const unread = (query: string) =>
      api.server.handler({ method: 'GET', path: `${CONFIG_MAPS}?${query}`, headers: {} });
    const responses = [
      await unread('watch=true'),
      await unread(`watch=true&resourceVersion=${api.server.revision}`),
      await unread(`watch=true&resourceVersion=${revision}`),
    ];
    const reading = await api.watch(CONFIG_MAPS);
    for (let index = 0; index < 30; index++) {
      const data = { text: String(index).padStart(64 * 1024) };
      await api.patch(`${CONFIG_MAPS}/a`, { data });
    }
    assert.equal(api.server.watches, 1, 'a client that reads keeps its watch');
    for (const { body } of responses) assert.deepEqual(await Array.fromAsync(body), []);
    assert.equal((await reading.events()).length, 31);
    await reading.stop();
  });

  test('cancelling the stream ends the watch', async () => {
    const api = await apiWithMaps('a');
    const response = await api.server.handler({
      method: 'GET',
      path: `${CONFIG_MAPS}?watch=true`,
      headers: {},
    });
    for await (const chunk of response.body) {
      assert.match(new TextDecoder().decode(chunk), /"ADDED"/);
      break;
    }
    assert.equal(api.server.watches, 0);
    assert.equal(api.clock.pending, 0);
  });

  test('ends when its resource is no longer served', async () => {
    const api = await apiWithCounts();
    await api.post(COUNTS, count('web'));
    const watch = await api.watch(COUNTS);
    await api.delete(`${CRDS}/counts.demo.mark8s.io`);
    assert.deepEqual(await watch.said(), ['ADDED web', 'DELETED web']);
    assert.equal(watch.ended, true);
    assert.equal(watch.error, undefined);
  });

  test('breaks when the connections are dropped', async () => {
    const api = await apiWithMaps('a');
    const watch = await api.watch(CONFIG_MAPS);
    await watch.said();
    api.server.faults.dropWatches();
    await settle();
    assert.equal(watch.ended, true);
    assert.ok(watch.error instanceof ConnectionReset);
    assert.equal(api.server.watches, 0);
  });
});
