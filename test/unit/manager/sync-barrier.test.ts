import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { LEASES, NAMESPACES } from '../../../src/api/builtin.ts';
import type { Lease } from '../../../src/api/builtin.ts';
import type { KubernetesObject } from '../../../src/api/object.ts';
import { keyOf } from '../../../src/api/object-key.ts';
import type { ObjectKey } from '../../../src/api/object-key.ts';
import type { Resource } from '../../../src/api/resource.ts';
import { compareResourceVersions } from '../../../src/api/resource-version.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { InformerSet } from '../../../src/cache/informer-set.ts';
import { listerWatcher } from '../../../src/cache/lister-watcher.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { waitUntilCurrent, withSyncBarrier } from '../../../src/manager/sync-barrier.ts';
import type { BarrierCache } from '../../../src/manager/sync-barrier.ts';
import { Deferred } from '../../../src/util/deferred.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';
import type { HttpHandler } from '../../../src/util/http.ts';
import { silentLogger } from '../../../src/util/logger.ts';

let clock: FakeClock;
let server: ApiServer;
let client: HttpClient;
/** The Accept header of each request. */
let accepted: string[];

describe('waitUntilCurrent', () => {
  beforeEach(() => {
    clock = new FakeClock();
    server = new ApiServer({ clock });
    accepted = [];
    const handler: HttpHandler = (request) => {
      accepted.push(String(request.headers?.['accept']));
      return server.handler(request);
    };
    client = new HttpClient({ handler, server: 'https://test', clock });
  });

  /** A cache of the Leases of one namespace whose state the test sets. */
  class Cache implements BarrierCache {
    readonly name = 'leases';
    source: BarrierCache['source'];
    readonly lister: BarrierCache['lister'];
    hasSynced = true;
    lastSyncResourceVersion: string;
    quorumReadMs = -Infinity;
    /** Whether a relist was requested. */
    mustRelist = false;
    readonly #objects = new Map<ObjectKey, Lease>();

    constructor(
      resourceVersion: string,
      {
        resource = LEASES,
        isLarge = false,
      }: { resource?: Resource<Lease>; isLarge?: boolean } = {},
    ) {
      this.lastSyncResourceVersion = resourceVersion;
      this.source = listerWatcher(client, resource, { namespace: 'default' });
      const objects = this.#objects;
      this.lister = {
        get size() {
          return isLarge ? 5001 : objects.size;
        },
        get: (key) => objects.get(key),
        list: () => [...objects.values()],
      };
    }

    /** Fills the cache with the current Leases; its resourceVersion stays. */
    async fill(): Promise<this> {
      const { items } = await client.list(LEASES, { namespace: 'default' });
      this.#objects.clear();
      for (const lease of items) this.#objects.set(keyOf(lease), lease);
      return this;
    }

    relist(): void {
      this.mustRelist = true;
    }

    /** Performs the relist. */
    async completeRelist(): Promise<void> {
      this.quorumReadMs = clock.monotonic();
      await this.fill();
    }

    hasReached(resourceVersion: string): boolean {
      return compareResourceVersions(this.lastSyncResourceVersion, resourceVersion) >= 0;
    }
  }

  /** A cache with the current objects and an old resourceVersion. */
  function current(): Promise<Cache> {
    return new Cache('1').fill();
  }

  const at = (name: string) => ({ namespace: 'default', name });

  /** Creates a Lease and returns its resourceVersion. */
  async function change(name: string): Promise<string> {
    const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: at(name) };
    return (await client.create(LEASES, lease)).metadata.resourceVersion;
  }

  /** Increases the server's revision by a change of another resource. */
  async function changeElsewhere(name: string): Promise<void> {
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
    await client.create(NAMESPACES, namespace);
  }

  /** Starts to wait; `result` is undefined until it ends. */
  function start(cache: BarrierCache, signal: AbortSignal = new AbortController().signal) {
    const state: { result: boolean | undefined } = { result: undefined };
    const deps = { clock, log: silentLogger, random: () => 0 };
    void waitUntilCurrent(cache, deps, signal).then((result) => (state.result = result));
    return state;
  }

  const requests = () =>
    server.requests.recent.filter(({ method }) => method === 'GET').map(({ path }) => path);

  const large = { isLarge: true };
  const listed = (query: string) =>
    `/apis/coordination.k8s.io/v1/namespaces/default/leases?limit=${query}`;

  describe('a cache', () => {
    it("is current after one quorum read if it has the server's revision", async () => {
      await change('a');
      const revision = await change('b');
      const states = [start(new Cache(revision)), start(new Cache(revision, large))];
      await settle();
      assert.deepEqual(
        states.map(({ result }) => result),
        [true, true],
      );
      assert.deepEqual(requests(), [listed('5000'), listed('1')]);
      assert.equal(clock.pending, 0);
    });

    it('is not compared before it has synced', async () => {
      const cache = await current();
      cache.hasSynced = false;
      const before = requests().length;
      const state = start(cache);
      await clock.advance(60_000);
      assert.equal(state.result, undefined);
      assert.deepEqual(requests().slice(before), [listed('1')]);
      cache.hasSynced = true;
      await clock.advance(500);
      assert.equal(state.result, true);
    });

    it('counts as current if the resource is not served', async () => {
      const resource = { ...LEASES, group: 'example.com' };
      const synced = start(new Cache('1', { resource }));
      const never = new Cache('1', { resource });
      never.hasSynced = false;
      const waiting = start(never);
      await settle();
      assert.deepEqual([synced.result, waiting.result], [true, true]);
    });

    it('is current after a relist if it was ahead of the server', async () => {
      for (const options of [{}, large]) {
        const cache = new Cache('1000', options);
        const state = start(cache);
        await clock.advance(5000);
        assert.deepEqual([state.result, cache.mustRelist], [undefined, true]);
        await cache.completeRelist();
        await clock.advance(500);
        assert.equal(state.result, true);
      }
    });

    it('resolves to false and stops its timers on abort', async () => {
      for (const options of [{}, large]) {
        const cache = new Cache(await change(`a-${options === large}`), options);
        await change(`b-${options === large}`);
        const stop = new AbortController();
        const state = start(cache, stop.signal);
        await clock.advance(1500);
        stop.abort();
        await settle();
        assert.equal(state.result, false);
        assert.equal(start(cache, AbortSignal.abort()).result, undefined);
        await settle();
        assert.equal(clock.pending, 0);
      }
    });
  });

  describe('a small cache', () => {
    it('is current at once if it contains what the list contains', async () => {
      for (const name of ['a', 'b', 'c']) await change(name);
      const cache = await current();
      await changeElsewhere('x');
      const before = requests().length;
      const state = start(cache);
      await settle();
      assert.equal(state.result, true);
      assert.deepEqual(requests().slice(before), [listed('5000')]);
      assert.match(accepted.at(-1) ?? '', /PartialObjectMetadataList/);
    });

    it('is current at once if both it and the list are empty', async () => {
      await changeElsewhere('x');
      const state = start(await current());
      await settle();
      assert.equal(state.result, true);
    });

    for (const [what, happen] of [
      ['lacks an object', () => change('new')],
      [
        'has an older state',
        () =>
          client.patch(LEASES, at('a'), { type: 'merge', body: { spec: { holderIdentity: 'x' } } }),
      ],
      ['has a deleted object', () => client.delete(LEASES, at('a'))],
      [
        'has an object that was replaced by one of the same name',
        async () => {
          await client.delete(LEASES, at('a'));
          await change('a');
        },
      ],
    ] as const) {
      it(`is not current while it ${what}`, async () => {
        await change('a');
        await change('b');
        const cache = await current();
        await happen();
        const state = start(cache);
        await clock.advance(1500);
        assert.equal(state.result, undefined);
        await cache.fill();
        await clock.advance(500);
        assert.equal(state.result, true);
      });
    }

    it('may, but need not, contain changes after the read', async () => {
      await change('a');
      const [behind, ahead] = [await current(), await current()];
      await changeElsewhere('x');
      const late = new Deferred();
      const remove = server.faults.afterRequest(() => late.promise.then(() => undefined));
      const states = [start(behind), start(ahead)];
      await settle();
      remove();
      await change('b');
      await ahead.fill();
      late.resolve();
      await settle();
      assert.deepEqual(
        states.map(({ result }) => result),
        [true, true],
      );
    });

    it('relists if it lacks an object and no later change explains it', async () => {
      const cache = new Cache(await change('refused'));
      await changeElsewhere('x');
      const state = start(cache);
      await clock.advance(2000);
      assert.equal(state.result, undefined);
      await clock.advance(2000);
      assert.equal(cache.mustRelist, true, 'there is no later change');
      await cache.completeRelist();
      await clock.advance(500);
      assert.equal(state.result, true);
    });

    it('relists if it contains objects of a history that the server has lost', async () => {
      await change('kept');
      const snapshot = server.faults.snapshot();
      await change('lost');
      const cache = await current();
      cache.lastSyncResourceVersion = String(server.revision);
      server.faults.restore(snapshot);
      for (const name of ['x', 'y', 'z']) await changeElsewhere(name);
      const state = start(cache);
      await clock.advance(5000);
      assert.deepEqual([state.result, cache.mustRelist], [undefined, true]);
      await cache.completeRelist();
      await clock.advance(500);
      assert.equal(state.result, true);
    });

    it('relists if the server uses its resourceVersion for another object of the name', async () => {
      const snapshot = server.faults.snapshot();
      const lost = await change('a');
      const cache = await current();
      cache.lastSyncResourceVersion = lost;
      server.faults.restore(snapshot);
      assert.equal(await change('a'), lost);
      await changeElsewhere('x');
      const state = start(cache);
      await clock.advance(5000);
      assert.deepEqual([state.result, cache.mustRelist], [undefined, true]);
      await cache.completeRelist();
      await clock.advance(500);
      assert.equal(state.result, true);
    });
  });

  describe('a large cache', () => {
    it('is current after the probe watch if nothing changed', async () => {
      const cache = new Cache(await change('a'), large);
      await changeElsewhere('x');
      const state = start(cache);
      await clock.advance(999);
      assert.equal(state.result, undefined);
      await clock.advance(1);
      assert.equal(state.result, true);
      assert.equal(requests().length, 2);
    });

    it('is current when it has reached the last change before the read', async () => {
      const cache = new Cache(await change('a'), large);
      await change('b');
      const last = await change('c');
      await changeElsewhere('x');
      const state = start(cache);
      await clock.advance(10_000);
      assert.equal(state.result, undefined);
      cache.lastSyncResourceVersion = last;
      await clock.advance(500);
      assert.equal(state.result, true);
    });

    it('need not contain changes after the read', async () => {
      const cache = new Cache(await change('a'), large);
      await changeElsewhere('x');
      const state = start(cache);
      await settle();
      await change('b');
      await settle();
      assert.equal(state.result, true, 'that change proves that there was none before');
    });

    it('retries failed lists and watches', async () => {
      const cache = new Cache(await change('a'), large);
      await changeElsewhere('x');
      for (const verb of ['list', 'list', 'watch']) {
        server.faults.failNext({ verb, resource: 'leases' }, 500);
      }
      const state = start(cache);
      await clock.advance(5000);
      assert.equal(state.result, true);
      assert.equal(requests().length, 6);
    });

    it('retries with a later resourceVersion after "410 Expired"', async () => {
      const cache = new Cache(await change('a'), large);
      await change('b');
      server.faults.expireHistory();
      const state = start(cache);
      await clock.advance(5000);
      assert.equal(state.result, undefined);
      cache.lastSyncResourceVersion = await change('c');
      await clock.advance(5000);
      assert.equal(state.result, true);
    });

    it('is handled as large if the list has a second page', async () => {
      await change('a');
      const cache = await current();
      await changeElsewhere('x');
      const { source } = cache;
      cache.source = {
        list: async (request) => ({ ...(await source.list(request)), continueToken: 'more' }),
        watch: (request) => source.watch(request),
      };
      const state = start(cache);
      await settle();
      assert.equal(state.result, undefined, 'the second page is not read');
    });
  });
});

describe('withSyncBarrier', () => {
  function fixture() {
    const clock = new FakeClock();
    const server = new ApiServer({ clock });
    const client = new HttpClient({ handler: server.handler, server: 'https://test', clock });
    const informers = new InformerSet(client, { clock });
    const ran: string[] = [];
    const start = (name: string, resources: readonly Resource[], signal: AbortSignal) => {
      const controller = {
        name,
        informers: resources.map((resource) => informers.for<KubernetesObject>(resource)),
        run: async () => void ran.push(name),
      };
      return withSyncBarrier(controller, { clock, log: silentLogger, random: () => 0 }).run(signal);
    };
    return { clock, server, informers, ran, start };
  }

  it('starts each controller as soon as its own caches are current', async () => {
    const { clock, server, informers, ran, start } = fixture();
    const stop = new AbortController();
    server.faults.beforeRequest(({ info }) => (info?.resource === 'namespaces' ? 403 : undefined));
    const blocked = start('blocked', [LEASES, NAMESPACES], stop.signal);
    const free = start('free', [LEASES, { ...LEASES, group: 'missing.example.com' }], stop.signal);
    await clock.advance(5000);
    assert.deepEqual(ran, [], 'no cache has synced');
    const running = informers.run(stop.signal);
    await clock.advance(5000);
    assert.deepEqual(ran, ['free']);
    server.faults.clear();
    await clock.advance(60_000);
    assert.deepEqual(ran, ['free', 'blocked']);
    stop.abort();
    await Promise.all([blocked, free, running]);
  });

  it('does not start a controller after an abort', async () => {
    const { ran, start } = fixture();
    const stop = new AbortController();
    const run = start('late', [LEASES], stop.signal);
    await settle();
    stop.abort();
    await run;
    assert.deepEqual(ran, []);
  });
});
