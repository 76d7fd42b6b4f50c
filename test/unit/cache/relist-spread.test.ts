import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Resource } from '../../../src/api/resource.ts';
import { InformerSet } from '../../../src/cache/informer-set.ts';
import { WatchListSupport } from '../../../src/cache/reflector-watch.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import type { HttpHandler } from '../../../src/util/http.ts';
import { seededRandom } from '../../../src/util/seeded-random.ts';

const EXPIRED =
  '{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}\n';

/** Runs informers whose watches expire at once; returns the delays of their relists in order, in milliseconds. */
async function relistDelays(informers: number): Promise<number[]> {
  const clock = new FakeClock();
  const expire: (() => void)[] = [];
  let listedMs: number[] = [];
  const handler: HttpHandler = async ({ path, signal }) => {
    const headers = { 'content-type': 'application/json' };
    if (path.includes('watch=true')) {
      const body = (async function* () {
        const ended = Promise.withResolvers<void>();
        signal?.addEventListener('abort', () => ended.resolve());
        expire.push(ended.resolve);
        await ended.promise;
        yield Buffer.from(EXPIRED);
      })();
      return { status: 200, headers, body };
    }
    listedMs.push(clock.monotonic());
    const body = (async function* () {
      yield Buffer.from(
        '{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[]}',
      );
    })();
    return { status: 200, headers, body };
  };
  const client = new HttpClient({ handler, server: 'https://test', clock });
  const watchList = new WatchListSupport(clock, { enabled: false });
  const set = new InformerSet(client, { clock, random: seededRandom(1), watchList });
  for (let at = 0; at < informers; at++) {
    const resource: Resource = {
      group: 'g',
      version: 'v1',
      plural: `p${at}`,
      kind: `P${at}`,
      namespaced: true,
    };
    set.for(resource);
  }
  const stop = new AbortController();
  const running = set.run(stop.signal);
  await clock.advance(2000);
  const expiredMs = clock.monotonic();
  listedMs = [];
  for (const end of expire.splice(0)) end();
  await clock.advance(5000);
  stop.abort();
  await running;
  return listedMs.map((ms) => ms - expiredMs);
}

test('relists at once after one watch expired', async () => {
  const delays = await relistDelays(1);
  assert.equal(delays.length, 1);
  assert.ok(delays[0]! < 50, delays.join());
});

test('spreads the relists of watches that expire together over 0.8 s', async () => {
  const delays = await relistDelays(40);
  assert.equal(delays.length, 40);
  assert.ok(delays.at(-1)! < 800, delays.join());
  const perTenth = Array.from(
    { length: 8 },
    (_, at) => delays.filter((ms) => Math.floor(ms / 100) === at).length,
  );
  assert.ok(Math.max(...perTenth) <= 16, `relists in each 100 ms: ${perTenth.join()}`);
});
