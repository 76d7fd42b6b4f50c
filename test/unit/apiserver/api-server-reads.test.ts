import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ConnectionReset } from '../../../src/apiserver/http/faults.ts';
import { settle } from '../../../src/util/fake-clock.ts';
import type { Json, Reply } from './api-client.ts';
import {
  Api,
  CONFIG_MAPS,
  COUNTS,
  PODS,
  apiWithCounts,
  configMap,
  count,
  pod,
} from './api-client.ts';

function names({ body }: Reply): string[] {
  return body.items.map(({ metadata }: Json) => metadata.name);
}

async function apiWithMaps(...all: string[]): Promise<Api> {
  const api = new Api();
  for (const name of all) await api.post(CONFIG_MAPS, configMap(name));
  return api;
}

describe('get', () => {
  test('of a missing object is NotFound, of an unknown path a 404', async () => {
    const api = await apiWithCounts();
    const missing = await api.get(`${COUNTS}/web`);
    assert.equal(missing.status, 404);
    assert.equal(missing.body.message, 'counts.demo.mark8s.io "web" not found');
    for (const path of ['/nothing', '/apis/nothing.io/v1/things', `${COUNTS}s`]) {
      const { status, headers, text } = await api.get(path);
      assert.equal(status, 404, path);
      assert.equal(headers['content-type'], 'text/plain; charset=utf-8');
      assert.equal(text, '404 page not found\n');
    }
    // In groups of the server's own it comes as a Status.
    for (const path of [
      '/api/v1/namespaces/default/things',
      '/api/v1/pods/web',
      '/api/v1/namespaces/default/nodes',
      '/api/v1/namespaces/default/configmaps/a/status',
      '/api/v1/namespaces/default/configmaps/a/constructor',
    ]) {
      const { status, body } = await api.get(path);
      assert.equal(status, 404, path);
      assert.equal(body.message, 'the server could not find the requested resource');
    }
  });
});

describe('list', () => {
  test('has its kind and revision; items of built-in kinds do not repeat the kind', async () => {
    const api = await apiWithCounts();
    await api.post(CONFIG_MAPS, configMap('a'));
    await api.post(COUNTS, count('web'));
    const maps = (await api.get(CONFIG_MAPS)).body;
    assert.equal(maps.kind, 'ConfigMapList');
    assert.equal(maps.metadata.resourceVersion, String(api.server.revision));
    assert.equal(maps.items[0].kind, undefined);
    const counts = (await api.get('/apis/demo.mark8s.io/v1/counts')).body;
    assert.equal(counts.kind, 'CountList');
    assert.equal(counts.items[0].kind, 'Count');
    assert.equal(counts.items[0].apiVersion, 'demo.mark8s.io/v1');
  });

  test('selects by labels and by fields', async () => {
    const api = await apiWithCounts();
    await api.post('/api/v1/namespaces', { metadata: { name: 'team' } });
    await api.post(PODS, pod('a', { labels: { app: 'x' } }));
    await api.post(PODS, pod('b', { labels: { app: 'y' } }));
    await api.post(PODS.replace('default', 'team'), pod('c', { labels: { app: 'y' } }));
    await api.post(COUNTS, count('web', { name: 'nginx' }));
    const found = async (query: string, path = '/api/v1/pods') =>
      names(await api.get(`${path}?${query}`));
    assert.deepEqual(await found('labelSelector=app%3Dy'), ['b', 'c']);
    assert.deepEqual(await found('labelSelector=app+in+(x,y)', PODS), ['a', 'b']);
    assert.deepEqual(await found('fieldSelector=metadata.name%3Da'), ['a']);
    assert.deepEqual(await found('fieldSelector=metadata.namespace%3Dteam'), ['c']);
    assert.deepEqual(await found('fieldSelector=status.phase%3DPending,metadata.name!%3Da'), [
      'b',
      'c',
    ]);
    assert.deepEqual(await found('fieldSelector=spec.name%3Dnginx', COUNTS), ['web']);
    assert.deepEqual(await found('fieldSelector=spec.name%3Dapache', COUNTS), []);
  });

  test('rejects invalid options', async () => {
    const api = await apiWithCounts();
    const cases: [path: string, code: number, message: RegExp][] = [
      [`${PODS}?labelSelector=a%3D%3D%3Db`, 400, /unable to parse requirement/],
      [`${PODS}?fieldSelector=spec.foo%3D1`, 400, /^field label not supported: spec.foo$/],
      [`${COUNTS}?fieldSelector=constructor%3D1`, 400, /^field label not supported: constructor$/],
      [
        `${CONFIG_MAPS}?fieldSelector=data%3D1`,
        400,
        /"data" is not a known field selector: only "metadata.name", "metadata.namespace"/,
      ],
      [`${PODS}?resourceVersion=abc`, 400, /invalid resource version/],
      [
        `${PODS}?resourceVersionMatch=Exact`,
        422,
        /resourceVersionMatch is forbidden unless resourceVersion is provided/,
      ],
      [
        `${PODS}?resourceVersion=0&resourceVersionMatch=Exact`,
        422,
        /"exact" is forbidden for resourceVersion "0"/,
      ],
      [`${PODS}?resourceVersion=1&resourceVersionMatch=Odd`, 422, /Unsupported value: "Odd"/],
      [`${PODS}?sendInitialEvents=true`, 422, /sendInitialEvents is forbidden for list/],
      [`${PODS}?limit=x`, 400, /^strconv.ParseInt: parsing/],
      [`${PODS}?continue=x`, 400, /continue key is not valid/],
      [
        `${PODS}?watch=true&sendInitialEvents=true`,
        422,
        /sendInitialEvents requires setting resourceVersionMatch to NotOlderThan/,
      ],
      [
        `${PODS}?watch=true&resourceVersionMatch=NotOlderThan`,
        422,
        /forbidden for watch unless sendInitialEvents is provided/,
      ],
    ];
    for (const [path, code, message] of cases) {
      const { status, body } = await api.get(path);
      assert.equal(status, code, path);
      assert.match(body.message, message);
    }
  });

  test('all pages show the state of the first page', async () => {
    const api = await apiWithMaps('a', 'b', 'c', 'd', 'e');
    const first = await api.get(`${CONFIG_MAPS}?limit=2`);
    assert.deepEqual(names(first), ['a', 'b']);
    assert.equal(first.body.metadata.remainingItemCount, 3);
    await api.delete(`${CONFIG_MAPS}/c`);
    await api.post(CONFIG_MAPS, configMap('cc'));
    await api.patch(`${CONFIG_MAPS}/d`, { data: { a: 'new' } });
    const next = (reply: Reply) =>
      api.get(`${CONFIG_MAPS}?limit=2&continue=${reply.body.metadata.continue}`);
    const second = await next(first);
    assert.deepEqual(names(second), ['c', 'd']);
    assert.equal(second.body.items[1].data.a, '1');
    assert.equal(second.body.metadata.resourceVersion, first.body.metadata.resourceVersion);
    const third = await next(second);
    assert.deepEqual(names(third), ['e']);
    assert.equal(third.body.metadata.continue, undefined);
  });

  test('with a selector does not report the remaining item count', async () => {
    const api = await apiWithMaps('a', 'b', 'c');
    const { body } = await api.get(`${CONFIG_MAPS}?limit=1&labelSelector=!x`);
    assert.ok(body.metadata.continue);
    assert.equal(body.metadata.remainingItemCount, undefined);
  });

  describe('to a slow client', () => {
    const open = async (api: Api, headers: Record<string, string> = {}) => {
      const { body } = await api.server.handler({ method: 'GET', path: CONFIG_MAPS, headers });
      return body[Symbol.asyncIterator]();
    };

    async function apiWithLargeMaps(count: number): Promise<Api> {
      const api = new Api({ historyBytes: 1024 ** 2 });
      for (let index = 0; index < count; index++) {
        const data = { text: 'x'.repeat(40 * 1024) };
        await api.post(CONFIG_MAPS, { ...configMap(`m${index}`), data });
      }
      return api;
    }

    test('is encoded in pieces, as the client reads them', async () => {
      const api = await apiWithLargeMaps(20);
      for (const accept of ['application/json', 'application/json;as=Table;v=v1;g=meta.k8s.io']) {
        const chunks: Uint8Array[] = [];
        const path = `${CONFIG_MAPS}?includeObject=Object`;
        const { body } = await api.server.handler({ method: 'GET', path, headers: { accept } });
        for await (const chunk of body) chunks.push(chunk);
        assert.ok(chunks.every(({ byteLength }) => byteLength < 128 * 1024));
        const list: Json = JSON.parse(Buffer.concat(chunks).toString());
        assert.equal((list.items ?? list.rows).length, 20);
      }
    });

    test('shows the state at its start', async () => {
      const api = await apiWithLargeMaps(4);
      const chunks = await open(api);
      const { value: first = new Uint8Array() } = await chunks.next();
      await api.patch(`${CONFIG_MAPS}/m3`, { data: { text: 'changed' } });
      await api.delete(`${CONFIG_MAPS}/m2`);
      const rest = await Array.fromAsync({ [Symbol.asyncIterator]: () => chunks });
      const list: Json = JSON.parse(Buffer.concat([first, ...rest]).toString());
      assert.deepEqual(
        list.items.map(({ data }: Json) => data.text.length),
        [40 * 1024, 40 * 1024, 40 * 1024, 40 * 1024],
      );
    });

    test('breaks when the history no longer contains objects of that state', async () => {
      const api = await apiWithLargeMaps(4);
      const [slow, quick] = [await open(api), await open(api)];
      await slow.next();
      for (let index = 0; index < 40; index++) {
        await api.patch(`${CONFIG_MAPS}/m3`, { data: { text: String(index).padStart(40 * 1024) } });
      }
      await assert.rejects(slow.next(), ConnectionReset);
      await assert.rejects(quick.next(), ConnectionReset);
      assert.equal((await api.get(CONFIG_MAPS)).body.items.length, 4);
    });
  });

  test('an expired continue token is answered with 410 and an inconsistent continue token', async () => {
    const api = await apiWithMaps('a', 'b', 'c');
    const first = await api.get(`${CONFIG_MAPS}?limit=1`);
    await api.delete(`${CONFIG_MAPS}/b`);
    api.server.faults.expireHistory();
    const path = `${CONFIG_MAPS}?limit=5&continue=`;
    const expired = await api.get(path + first.body.metadata.continue);
    assert.equal(expired.status, 410);
    assert.equal(expired.body.reason, 'Expired');
    assert.match(
      expired.body.message,
      /^The provided continue parameter is too old to display a consistent list result/,
    );
    const rest = await api.get(path + expired.body.metadata.continue);
    assert.deepEqual(names(rest), ['c']);
    assert.equal(rest.body.metadata.resourceVersion, String(api.server.revision));
  });

  test('an exact revision shows that state, others the newest', async () => {
    const api = await apiWithMaps('a');
    const revision = api.server.revision;
    await api.post(CONFIG_MAPS, configMap('b'));
    const at = async (query: string) => names(await api.get(`${CONFIG_MAPS}?${query}`));
    assert.deepEqual(await at(`resourceVersion=${revision}&resourceVersionMatch=Exact`), ['a']);
    assert.deepEqual(await at(`resourceVersion=${revision}&resourceVersionMatch=NotOlderThan`), [
      'a',
      'b',
    ]);
    assert.deepEqual(await at(`resourceVersion=${revision}`), ['a', 'b']);
    assert.deepEqual(await at('resourceVersion=0'), ['a', 'b']);
    assert.deepEqual(await at(`resourceVersion=${revision}&limit=5`), ['a']);
    api.server.faults.expireHistory();
    const gone = await api.get(
      `${CONFIG_MAPS}?resourceVersion=${revision}&resourceVersionMatch=Exact`,
    );
    assert.equal(gone.status, 410);
  });

  test('a future revision is awaited, and after three seconds rejected as too large', async () => {
    const api = await apiWithMaps('a');
    const future = api.server.revision + 1;
    const late = api.get(`${CONFIG_MAPS}?resourceVersion=${future}`);
    await settle();
    await api.post(CONFIG_MAPS, configMap('b'));
    assert.deepEqual(names(await late), ['a', 'b']);
    const never = api.get(`${CONFIG_MAPS}/a?resourceVersion=${future + 1}`);
    await api.clock.advance(3000);
    const { status, headers, body } = await never;
    assert.equal(status, 504);
    assert.equal(headers['retry-after'], '1');
    assert.equal(
      body.message,
      `Timeout: Too large resource version: ${future + 1}, current: ${future}`,
    );
    assert.deepEqual(body.details, {
      causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
      retryAfterSeconds: 1,
    });
  });
});

describe('representations', () => {
  const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json';
  const PARTIAL = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io';

  test('serves a Table, and PartialObjectMetadata', async () => {
    const api = await apiWithCounts();
    await api.post(COUNTS, count('web'));
    const table = (await api.get(COUNTS, { accept: TABLE })).body;
    assert.equal(table.kind, 'Table');
    assert.deepEqual(
      table.columnDefinitions.map(({ name }: Json) => name),
      ['Name', 'Desired'],
    );
    assert.deepEqual(table.rows[0].cells, ['web', 3]);
    assert.equal(table.rows[0].object.kind, 'PartialObjectMetadata');
    const whole = (await api.get(`${COUNTS}?includeObject=Object`, { accept: TABLE })).body;
    assert.equal(whole.rows[0].object.kind, 'Count');
    const partial = (await api.get(COUNTS, { accept: PARTIAL })).body;
    assert.equal(partial.kind, 'PartialObjectMetadataList');
    assert.deepEqual(Object.keys(partial.items[0]).sort(), ['apiVersion', 'kind', 'metadata']);
  });

  test('a kind of a CRD has no protobuf, so the next media type counts', async () => {
    const api = await apiWithCounts();
    const protobuf = 'application/vnd.kubernetes.protobuf';
    const both = await api.get(COUNTS, { accept: `${protobuf},application/json` });
    assert.equal(both.body.kind, 'CountList');
    assert.equal((await api.get(COUNTS, { accept: '*/*' })).status, 200);
    const alone = await api.get(COUNTS, { accept: `${protobuf}, application/json;as=None` });
    assert.equal(alone.status, 406);
  });
});
