import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Json } from './api.ts';
import { Api, assertRejected, JSON_TYPE } from './api.ts';
import { GROUP, widget, widgetCrd, widgets } from './objects.ts';

let api: Api;

before(async () => {
  api = await Api.start();
  await api.install(widgetCrd());
});

after(() => api.close());

/** Returns an event without the fields that differ between runs. */
function short({ type, object }: Json): unknown[] {
  return [type, object.metadata.name, object.spec?.color];
}

async function versionOf(path: string): Promise<string> {
  return (await api.get(path)).body.metadata.resourceVersion;
}

test('a watch starts after its resourceVersion', async () => {
  const path = widgets(await api.namespace());
  await api.made(api.post(path, widget('old')));
  const from = await versionOf(path);
  await api.made(api.post(path, widget('a')));
  const watch = await api.watch(`${path}?resourceVersion=${from}`);
  assert.deepEqual([watch.status, watch.headers['content-type']], [200, JSON_TYPE]);
  await api.made(api.patch(`${path}/a`, { spec: { color: 'blue' } }));
  await api.made(api.delete(`${path}/a`));
  const events = [await watch.next(), await watch.next(), await watch.next()];
  assert.deepEqual(events.map(short), [
    ['ADDED', 'a', 'red'],
    ['MODIFIED', 'a', 'blue'],
    ['DELETED', 'a', 'blue'],
  ]);
  const versions = events.map(({ object }) => Number(object.metadata.resourceVersion));
  assert.deepEqual(
    versions,
    versions.toSorted((a, b) => a - b),
  );
  assert.equal(new Set(versions).size, 3);
});

test('a list and a watch from revision 1 start before the first object', async (t) => {
  if (!api.expireHistory) return t.skip('the history of this control plane may be compacted');
  const first = '/api/v1/namespaces?resourceVersion=1';
  const { metadata, items } = await api.made(api.get(`${first}&resourceVersionMatch=Exact`));
  assert.deepEqual([metadata.resourceVersion, items], ['1', []]);
  const watching = await api.watch(first);
  const { type, object } = await watching.next();
  assert.equal(type, 'ADDED');
  assert.match(object.metadata.name, /^(default|kube-)/);
});

test('without a resourceVersion or from 0, a watch starts with the existing objects', async () => {
  const path = widgets(await api.namespace());
  await api.made(api.post(path, widget('a')));
  await api.made(api.post(path, widget('b')));
  await api.until('the cache has caught up', async () => {
    const { body } = await api.get(`${path}?resourceVersion=0`);
    return body.items.length === 2;
  });
  for (const query of ['', '?resourceVersion=', '?resourceVersion=0']) {
    const watch = await api.watch(path + query);
    assert.deepEqual((await watch.nextInShort(2)).toSorted(), ['ADDED a', 'ADDED b'], query);
    await watch.close();
  }
});

test('an object that starts to match is ADDED, one that no longer matches is DELETED with its last matching state', async () => {
  const path = widgets(await api.namespace());
  await api.made(api.post(path, widget('a')));
  const from = await versionOf(path);
  const byLabel = await api.watch(`${path}?resourceVersion=${from}&labelSelector=tier%3Dx`);
  const byField = await api.watch(
    `${path}?resourceVersion=${from}&fieldSelector=spec.color%3Dblue`,
  );
  const steps = [
    { metadata: { labels: { tier: 'x' } } },
    { spec: { color: 'blue' } },
    { metadata: { labels: { tier: 'y' } }, spec: { color: 'green' } },
    { spec: { color: 'black' } },
    { metadata: { labels: { tier: 'x' } } },
  ];
  for (const step of steps) await api.made(api.patch(`${path}/a`, step));
  const events = [];
  for (let count = 0; count < 4; count++) events.push(await byLabel.next());
  assert.deepEqual(events.map(short), [
    ['ADDED', 'a', 'red'],
    ['MODIFIED', 'a', 'blue'],
    ['DELETED', 'a', 'blue'],
    ['ADDED', 'a', 'black'],
  ]);
  assert.deepEqual(events[2].object.metadata.labels, { tier: 'x' });
  assert.ok(
    Number(events[2].object.metadata.resourceVersion) >
      Number(events[1].object.metadata.resourceVersion),
    'at the resourceVersion at which it stopped',
  );
  assert.deepEqual(
    [short(await byField.next()), short(await byField.next())],
    [
      ['ADDED', 'a', 'blue'],
      ['DELETED', 'a', 'blue'],
    ],
  );
});

test('a streaming list sends the existing objects and then a bookmark', async () => {
  const path = widgets(await api.namespace());
  await api.made(api.post(path, widget('a')));
  await api.made(api.post(path, widget('b')));
  const options =
    'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';
  const watch = await api.watch(`${path}?${options}`);
  assert.deepEqual((await watch.nextInShort(2)).toSorted(), ['ADDED a', 'ADDED b']);
  const { type, object } = await watch.next();
  assert.equal(type, 'BOOKMARK');
  const { resourceVersion } = object.metadata;
  assert.deepEqual(object, {
    kind: 'Widget',
    apiVersion: `${GROUP}/v1`,
    metadata: { resourceVersion, annotations: { 'k8s.io/initial-events-end': 'true' } },
  });
  await api.made(api.post(path, widget('c')));
  assert.deepEqual(await watch.nextInShort(1), ['ADDED c']);
  await watch.close();

  const resumed = await api.watch(`${path}?resourceVersion=${resourceVersion}`);
  assert.deepEqual(await resumed.nextInShort(1), ['ADDED c']);
});

test('a streaming list without matching objects sends the bookmark', async () => {
  const path = widgets(await api.namespace());
  await api.made(api.post(path, widget('a')));
  const options =
    'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';
  const watch = await api.watch(`${path}?${options}&labelSelector=nothing`);
  assert.deepEqual(await watch.nextInShort(1), ['BOOKMARK']);
});

test('a watch can return only metadata', async () => {
  const path = widgets(await api.namespace());
  await api.made(api.post(path, widget('a')));
  const options =
    'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';
  const accept = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io';
  const watch = await api.watch(`${path}?${options}`, accept);
  const [added, bookmark] = [await watch.next(), await watch.next()];
  assert.deepEqual(Object.keys(added.object).toSorted(), ['apiVersion', 'kind', 'metadata']);
  for (const { object } of [added, bookmark]) {
    assert.deepEqual([object.kind, object.apiVersion], ['PartialObjectMetadata', 'meta.k8s.io/v1']);
  }
});

const STREAMING =
  'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io';

test('a watch can return tables; only the first has column definitions', async () => {
  const path = widgets(await api.namespace());
  const empty = await api.watch(`${path}?${STREAMING}`, TABLE);
  const onlyBookmark = await empty.next();
  await api.made(api.post(path, widget('a')));
  await api.made(api.post(path, widget('b')));
  assert.deepEqual(
    [onlyBookmark.type, onlyBookmark.object.columnDefinitions.length],
    ['BOOKMARK', 3],
  );
  assert.equal((await empty.next()).object.columnDefinitions, null);
  const watch = await api.watch(`${path}?${STREAMING}`, TABLE);
  const [first, second, bookmark] = [await watch.next(), await watch.next(), await watch.next()];
  for (const { object } of [first, second, bookmark]) assert.equal(object.kind, 'Table');
  assert.equal(first.object.columnDefinitions.length, 3);
  assert.equal(second.object.columnDefinitions, null);
  assert.equal(bookmark.type, 'BOOKMARK');
  assert.deepEqual(bookmark.object.rows[0].object.metadata.annotations, {
    'k8s.io/initial-events-end': 'true',
  });
});

test('a bookmark in a table has the cells of an empty object', async () => {
  const space = await api.namespace();
  const cells = async (path: string) => {
    const watch = await api.watch(`${path}?${STREAMING}&fieldSelector=metadata.name%3Dnone`, TABLE);
    const { type, object } = await watch.next();
    assert.equal(type, 'BOOKMARK');
    return object.rows[0].cells;
  };
  const core = `/api/v1/namespaces/${space}`;
  assert.deepEqual(await cells(`${core}/configmaps`), ['', 0, '<unknown>']);
  assert.deepEqual((await cells(`${core}/pods`)).slice(0, 5), ['', '0/0', '', '0', '<unknown>']);
  assert.deepEqual(await cells(`${core}/limitranges`), ['', '0001-01-01T00:00:00Z']);
  assert.deepEqual(await cells('/apis/apiextensions.k8s.io/v1/customresourcedefinitions'), [
    '',
    '',
    '',
    '0001-01-01T00:00:00Z',
    '',
    '',
    '',
    false,
  ]);
  const none = 'includeObject=None';
  const watch = await api.watch(`${core}/secrets?${STREAMING}&${none}`, TABLE);
  assert.equal((await watch.next()).object.rows[0].object.kind, 'PartialObjectMetadata');
});

test('a watch from before the retained history ends with a 410 event', async () => {
  const watch = await api.watch(`${widgets('default')}?resourceVersion=1`);
  assert.equal(watch.status, 200);
  const [event, ...more] = await watch.rest();
  assert.deepEqual(more, []);
  assert.equal(event.type, 'ERROR');
  const { message, ...status } = event.object;
  assert.deepEqual(status, {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    reason: 'Expired',
    code: 410,
  });
  assert.match(message, /^too old resource version: 1 \(\d+\)$/);
});

test('a watch ends after its timeout', async () => {
  const path = widgets(await api.namespace());
  const from = await versionOf(path);
  const watch = await api.watch(`${path}?resourceVersion=${from}&timeoutSeconds=1`);
  assert.deepEqual(await watch.rest(), []);
});

test('contradictory options are rejected and named', async () => {
  const refusals: [string, string][] = [
    [
      'sendInitialEvents=true',
      'resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan',
    ],
    [
      'resourceVersionMatch=NotOlderThan',
      'resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided',
    ],
    [
      'continue=x',
      'resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided',
    ],
  ];
  for (const [options, message] of refusals) {
    assertRejected(await api.get(`${widgets('default')}?watch=true&${options}`), {
      code: 422,
      reason: 'Invalid',
      message: `ListOptions.meta.k8s.io "" is invalid: ${message}`,
    });
  }
  const from = await versionOf(widgets('default'));
  const options = `resourceVersion=${from}&continue=x&timeoutSeconds=-1`;
  const ignored = await api.watch(`${widgets('default')}?${options}`);
  assert.deepEqual([ignored.status, await ignored.rest()], [200, []]);
});

test('watch options are validated', async () => {
  const path = `${widgets('default')}?watch=true`;
  assertRejected(await api.get(`${path}&resourceVersion=abc`), {
    code: 500,
    message:
      'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax',
  });
  assertRejected(await api.get(`${path}&fieldSelector=spec.size%3D1`), {
    code: 400,
    reason: 'BadRequest',
    message: 'field label not supported: spec.size',
  });
  assertRejected(await api.get(`${path}&timeoutSeconds=abc`), {
    code: 400,
    reason: 'BadRequest',
    message: 'strconv.ParseInt: parsing "abc": invalid syntax',
  });
});

test('a watch from a future resourceVersion is accepted and sends no events', async () => {
  const path = widgets(await api.namespace());
  const future = Number(await versionOf(path)) + 1_000_000;
  const query = `allowWatchBookmarks=true&timeoutSeconds=3&resourceVersion=${future}`;
  const watch = await api.watch(`${path}?${query}`);
  assert.equal(watch.status, 200);
  await api.made(api.post(path, widget('a')));
  // A server sends a bookmark 2 s before the end of a watch, if the client is not ahead.
  assert.deepEqual(await watch.rest(), []);
});
