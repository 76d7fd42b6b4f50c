import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ConnectionReset } from '../../../src/apiserver/http/faults.ts';
import { settle } from '../../../src/util/fake-clock.ts';
import type { Json, Reply } from './api-client.ts';
import { Api, CONFIG_MAPS, configMap } from './api-client.ts';

function names({ body }: Reply): string[] {
  return body.items.map(({ metadata }: Json) => metadata.name);
}

async function apiWithMaps(...all: string[]): Promise<Api> {
  const api = new Api();
  for (const name of all) await api.post(CONFIG_MAPS, configMap(name));
  return api;
}

describe('list', () => {
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
