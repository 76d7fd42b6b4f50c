import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { load } from 'js-yaml';
import type { Json } from './api.ts';
import { Api, JSON_TYPE, MERGE } from './api.ts';
import { decodeProtobufBody } from '../../src/apiserver/protobuf/protobuf-body.ts';
import { messageType } from '../../src/apiserver/protobuf/decode-message.ts';
import { configMap, configMaps, GROUP, widget, widgetCrd, widgets } from './objects.ts';

let api: Api;
let space: string;

before(async () => {
  api = await Api.start();
  await api.install(widgetCrd());
  space = await api.namespace();
  await api.made(api.post(configMaps(space), configMap('a', { on: 'yes', n: '1' })));
  await api.made(api.post(widgets(space), widget('a')));
  await api.made(api.post(configMaps(space), configMap('large', { a: 'x'.repeat(140_000) })));
  await api.made(api.post(configMaps(space), configMap('small', { a: 'x'.repeat(100_000) })));
});

after(() => api.close());

const YAML = 'application/yaml';

/** Returns the parsed YAML of a response; fails for another content type. */
async function yamlAt(path: string, accept: string = YAML): Promise<[status: number, body: Json]> {
  const { status, headers, text } = await api.get(path, accept);
  assert.equal(headers['content-type'], accept.replace(/,.*/, ''), text);
  return [status, load(text)];
}

test('objects, lists and errors are YAML for a client that prefers it', async () => {
  for (const path of [`${configMaps(space)}/a`, `${widgets(space)}/a`, widgets(space)]) {
    const [status, body] = await yamlAt(path);
    assert.deepEqual([status, body], [200, (await api.get(path)).body]);
  }
  const [status, body] = await yamlAt(`${configMaps(space)}/none`);
  assert.deepEqual([status, body.kind, body.reason], [404, 'Status', 'NotFound']);
  const [, preferred] = await yamlAt(`${configMaps(space)}/a`, `${YAML}, application/json;q=0.5`);
  assert.deepEqual(preferred.data, { on: 'yes', n: '1' });
  const json = await api.get(`${configMaps(space)}/a`, 'application/yaml;q=0.5, application/json');
  assert.equal(json.headers['content-type'], JSON_TYPE);
});

test('the response to a write is YAML for a client that prefers it', async () => {
  const { status, headers, text } = await api.send('POST', configMaps(space), configMap('b'), {
    accept: YAML,
  });
  assert.deepEqual([status, headers['content-type']], [201, YAML]);
  assert.match(text, /^apiVersion: v1\n/);
});

test('tables and metadata are YAML for a client that prefers it', async () => {
  const [, table] = await yamlTransformed('Table');
  assert.equal(table.kind, 'Table');
  const [, metadata] = await yamlTransformed('PartialObjectMetadata');
  assert.deepEqual([metadata.kind, metadata.data], ['PartialObjectMetadata', undefined]);
});

async function yamlTransformed(as: string): Promise<[status: number, body: Json]> {
  const accept = `${YAML};as=${as};v=v1;g=meta.k8s.io`;
  const { status, text } = await api.get(`${configMaps(space)}/a`, accept);
  return [status, load(text)];
}

test('discovery is YAML for a client that prefers it', async () => {
  for (const path of ['/api', '/apis', '/apis/apps', '/apis/apps/v1', `/apis/${GROUP}/v1`]) {
    const [, body] = await yamlAt(path);
    assert.match(body.kind, /^API/, path);
  }
  const aggregated = `${YAML};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList`;
  assert.equal((await yamlAt('/apis', aggregated))[1].kind, 'APIGroupDiscoveryList');
});

test('a media type that the server does not have is not acceptable', async () => {
  for (const path of [
    `${configMaps(space)}/a`,
    `${widgets(space)}/a`,
    configMaps(space),
    '/api',
    '/apis',
    '/apis/apps',
    '/apis/apps/v1',
    `/apis/${GROUP}`,
    `/apis/${GROUP}/v1`,
    '/version',
  ]) {
    const { status, body } = await api.get(path, 'text/plain');
    assert.deepEqual([status, body.reason], [406, 'NotAcceptable'], path);
  }
  assert.equal((await api.get('/version', YAML)).status, 406);
  const { status, body } = await api.get('/healthz', YAML);
  assert.deepEqual([status, body], [200, undefined]);
});

test('JSON is indented for people', async () => {
  const send = (path: string, headers = {}) => api.send('GET', path, undefined, headers);
  const object = `${configMaps(space)}/a`;
  const none = `${widgets(space)}?labelSelector=none`;
  const curl = { 'user-agent': 'curl/8.5.0' };
  for (const [path, headers] of [
    [`${object}?pretty=true`],
    [`${object}?pretty=1`],
    [object, { accept: `${JSON_TYPE};pretty=1` }],
    [object, curl],
    [object, { 'user-agent': 'Wget/1.21.4' }],
    [object, { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64)' }],
    [configMaps(space), curl],
    [widgets(space), curl],
    [none, curl],
    [`${object}?pretty=T`, { accept: `${JSON_TYPE};as=Table;v=v1;g=meta.k8s.io` }],
    [`${configMaps(space)}/none`, curl],
    ['/api', curl],
    [
      '/apis',
      { ...curl, accept: `${JSON_TYPE};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList` },
    ],
    ['/'],
    ['/version'],
  ] as const) {
    const { text } = await send(path, headers);
    assert.equal(text, JSON.stringify(JSON.parse(text), undefined, 2), path);
  }
  for (const [path, headers] of [
    [object],
    [`${object}?pretty=false`, curl],
    [`${object}?pretty=yes`, curl],
    [`${object}?pretty=`],
    ['/openapi/v2', curl],
    ['/.well-known/openid-configuration', curl],
  ] as const) {
    const { text } = await send(path, headers);
    assert.equal(text.trimEnd(), JSON.stringify(JSON.parse(text)), path);
  }
  const watch = await api.watch(`${configMaps(space)}?pretty=true`);
  assert.deepEqual(await watch.nextInShort(1), ['ADDED a']);
});

test('a watch has no YAML form', async () => {
  const { status, headers } = await api.get(`${configMaps(space)}?watch=1`, YAML);
  assert.deepEqual([status, headers['content-type']], [406, YAML]);
  const either = await api.get(`${configMaps(space)}?watch=1`, `${YAML}, ${JSON_TYPE}`);
  assert.equal(either.status, 406);
});

test('a request that is not acceptable writes nothing', async () => {
  const created = await api.send('POST', configMaps(space), configMap('no'), { accept: 'a/b' });
  assert.equal(created.status, 406);
  assert.equal((await api.get(`${configMaps(space)}/no`)).status, 404);
});

test('a large response is compressed for a client that accepts gzip', async () => {
  const get = (path: string, encoding: string) =>
    api.send('GET', path, undefined, { 'accept-encoding': encoding });
  for (const path of [`${configMaps(space)}/large`, configMaps(space)]) {
    const { headers, bytes } = await get(path, 'deflate, gzip');
    assert.deepEqual([headers['content-encoding'], headers['vary']], ['gzip', 'Accept-Encoding']);
    assert.deepEqual(JSON.parse(gunzipSync(bytes).toString()), (await api.get(path)).body);
  }
  assert.equal(
    (await get(`${configMaps(space)}/small`, 'gzip')).headers['content-encoding'],
    undefined,
  );
  for (const encoding of ['gzip;q=0', '*', 'br']) {
    const { headers, body } = await get(`${configMaps(space)}/large`, encoding);
    assert.deepEqual([headers['content-encoding'], body.kind], [undefined, 'ConfigMap'], encoding);
  }
});

test('a watch that lists is compressed for a client that accepts gzip, since Kubernetes 1.37', async () => {
  const fromList = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan';
  const path = `${configMaps(space)}?fieldSelector=metadata.name=small`;
  const list = await api.watch(`${path}&${fromList}&allowWatchBookmarks=true`, JSON_TYPE, 'gzip');
  const { major, minor } = (await api.get('/version')).body;
  const isNew = Number(major) > 1 || Number.parseInt(minor, 10) >= 37;
  assert.equal(list.headers['content-encoding'], isNew ? 'gzip' : undefined);
  assert.deepEqual(await list.nextInShort(2), ['ADDED small', 'BOOKMARK']);
  await api.made(api.patch(`${configMaps(space)}/small`, { data: { a: 'b' } }, MERGE));
  assert.deepEqual(await list.nextInShort(1), ['MODIFIED small']);
  for (const url of [path, `${path}&${fromList}`]) {
    const { headers } = await api.watch(url, JSON_TYPE, 'gzip');
    assert.equal(headers['content-encoding'], undefined, url);
  }
});

test('HEAD is answered like GET, except at built-in resources', async () => {
  const head = (path: string) => api.upgrade(path, { connection: 'close' }, 'HEAD');
  for (const path of [
    '/',
    '/apis',
    '/apis/apps',
    '/healthz',
    '/openapi/v2',
    `/apis/${GROUP}/v1`,
    widgets(space),
    `${widgets(space)}/a`,
  ]) {
    const { status, text } = await head(path);
    assert.deepEqual([status, text], [200, ''], path);
  }
  for (const path of ['/api', '/api/v1', '/apis/apps/v1', '/version', configMaps(space)]) {
    assert.equal((await head(path)).status, 405, path);
  }
  for (const path of ['/none', `${widgets(space)}/none`]) {
    assert.equal((await head(path)).status, 404, path);
  }
});

const PROTOBUF = 'application/vnd.kubernetes.protobuf';

/** Returns the JSON form of a protobuf response. */
function decoded(bytes: Uint8Array, kind: string): Json {
  const type = messageType(`core.v1.${kind}`) ?? messageType(`meta.v1.${kind}`);
  assert.ok(type, kind);
  return decodeProtobufBody(bytes, { group: '', version: 'v1', kind }, type);
}

test('objects, errors and discovery of built-in kinds are protobuf for a client that prefers it', async () => {
  const path = `${configMaps(space)}/a`;
  const { headers, bytes } = await api.get(path, `${PROTOBUF},${JSON_TYPE}`);
  assert.equal(headers['content-type'], PROTOBUF);
  const { data, metadata } = decoded(bytes, 'ConfigMap');
  assert.deepEqual(
    [data, metadata],
    (({ body }) => [body.data, body.metadata])(await api.get(path)),
  );
  const missing = await api.get(`${configMaps(space)}/none`, PROTOBUF);
  assert.deepEqual([missing.status, decoded(missing.bytes, 'Status').reason], [404, 'NotFound']);
  const partial = await api.get(path, `${PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1`);
  assert.deepEqual([partial.status, partial.headers['content-type']], [200, PROTOBUF]);
  const groups = await api.get('/apis', PROTOBUF);
  assert.equal(decoded(groups.bytes, 'APIGroupList').groups[0].name, 'apiregistration.k8s.io');
  const resources = decoded((await api.get('/apis/apps/v1', PROTOBUF)).bytes, 'APIResourceList');
  assert.equal(resources.groupVersion, 'apps/v1');
});

test('a list is protobuf, with its metadata and its items', async () => {
  const { status, bytes } = await api.get(`${configMaps(space)}?limit=2`, PROTOBUF);
  assert.equal(status, 200);
  const list = Buffer.from(bytes);
  assert.ok(list.includes('ConfigMapList'));
  // The name of the first item, in its metadata.
  assert.ok(list.includes(Buffer.of(0x0a, 1, 0x61, 0x12, 0)));
});

test('a watch in protobuf sends events with their length', async () => {
  const selected = `${configMaps(space)}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name=a`;
  const { headers, bytes } = await api.get(selected, PROTOBUF);
  assert.equal(headers['content-type'], `${PROTOBUF};stream=watch`);
  const frame = Buffer.from(bytes);
  assert.equal(frame.readUInt32BE(0), frame.byteLength - 4);
  assert.deepEqual([frame.includes('ADDED'), frame.includes('k8s')], [true, true]);
});

test('custom resources have no protobuf, except as metadata', async () => {
  const path = `${widgets(space)}/a`;
  const { status, headers, bytes } = await api.get(path, PROTOBUF);
  assert.deepEqual([status, headers['content-type']], [406, PROTOBUF]);
  assert.equal(decoded(bytes, 'Status').reason, 'NotAcceptable');
  assert.equal(
    (await api.get(path, `${PROTOBUF},${JSON_TYPE}`)).headers['content-type'],
    JSON_TYPE,
  );
  const metadata = await api.get(path, `${PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1`);
  assert.equal(metadata.status, 200);
});

test('built-in resources know no wildcard of a subtype', async () => {
  assert.equal((await api.get(`${widgets(space)}/a`, 'application/*')).status, 200);
  const { status, body } = await api.get(`${configMaps(space)}/a`, 'application/*');
  assert.equal(status, 406);
  assert.match(
    body.message,
    /^406: Not Acceptable\n\nAvailable representations: application\/json, /,
  );
});
