import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { LEASES, NAMESPACES } from '../../../../src/api/builtin.ts';
import type { Lease } from '../../../../src/api/builtin.ts';
import { keyOf } from '../../../../src/api/object-key.ts';
import type { ObjectKey } from '../../../../src/api/object-key.ts';
import type { Resource } from '../../../../src/api/resource.ts';
import { compareResourceVersions } from '../../../../src/api/resource-version.ts';
import { ApiServer } from '../../../../src/apiserver/api-server.ts';
import { catchUp } from '../../../../src/cache/reflector/catch-up.ts';
import type { Follower } from '../../../../src/cache/reflector/catch-up.ts';
import { listerWatcher } from '../../../../src/cache/reflector/lister-watcher.ts';
import { HttpClient } from '../../../../src/client/http-client.ts';
import { Deferred } from '../../../../src/util/deferred.ts';
import { FakeClock, settle } from '../../../../src/util/fake-clock.ts';
import type { HttpHandler } from '../../../../src/util/http.ts';
import { silentLogger } from '../../../../src/util/logger.ts';

let clock: FakeClock;
let server: ApiServer;
let client: HttpClient;
/** What each request would take for an answer. */
let accepted: string[];

describe('catching up', () => {
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

  /** A cache of the Leases of one namespace that is as far as the test says. */
  class Cache implements Follower {
    readonly name = 'leases';
    source: Follower['source'];
    readonly lister: Follower['lister'];
    hasSynced = true;
    lastSyncResourceVersion: string;
    quorumReadMs = -Infinity;
    /** It was told to list again. */
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

    /** Shows the leases that there are now, without having been told how far that is. */
    async fill(): Promise<this> {
      const { items } = await client.list(LEASES, { namespace: 'default' });
      this.#objects.clear();
      for (const lease of items) this.#objects.set(keyOf(lease), lease);
      return this;
    }

    relist(): void {
      this.mustRelist = true;
    }

    /** Does what it was told to. */
    async listAgain(): Promise<void> {
      this.quorumReadMs = clock.monotonic();
      await this.fill();
    }

    hasReached(resourceVersion: string): boolean {
      return compareResourceVersions(this.lastSyncResourceVersion, resourceVersion) >= 0;
    }
  }

  /** A cache that shows what is there now, and knows no revision but its first. */
  function current(): Promise<Cache> {
    return new Cache('1').fill();
  }

  const at = (name: string) => ({ namespace: 'default', name });

  /** @returns the resourceVersion of that change */
  async function change(name: string): Promise<string> {
    const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: at(name) };
    return (await client.create(LEASES, lease)).metadata.resourceVersion;
  }

  /** Something that has nothing to do with it, and moves the revision of the server on. */
  async function changeElsewhere(name: string): Promise<void> {
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
    await client.create(NAMESPACES, namespace);
  }

  /** Begins to wait; `arrived` is what came of it, so far. */
  function begin(cache: Follower, signal: AbortSignal = new AbortController().signal) {
    const state: { arrived: boolean | undefined } = { arrived: undefined };
    const deps = { clock, log: silentLogger, random: () => 0 };
    void catchUp(cache, deps, signal).then((arrived) => (state.arrived = arrived));
    return state;
  }

  const asked = () =>
    server.requests.recent.filter(({ method }) => method === 'GET').map(({ path }) => path);

  const large = { isLarge: true };
  const listed = (query: string) =>
    `/apis/coordination.k8s.io/v1/namespaces/default/leases?limit=${query}`;

  describe('a cache', () => {
    it('as far as the server is fresh after one read, from the quorum', async () => {
      await change('a');
      const revision = await change('b');
      const states = [begin(new Cache(revision)), begin(new Cache(revision, large))];
      await settle();
      assert.deepEqual(
        states.map(({ arrived }) => arrived),
        [true, true],
      );
      assert.deepEqual(asked(), [listed('5000'), listed('1')]);
      assert.equal(clock.pending, 0);
    });

    it('is not asked before it has synced', async () => {
      const cache = await current();
      cache.hasSynced = false;
      const before = asked().length;
      const state = begin(cache);
      await clock.advance(60_000);
      assert.equal(state.arrived, undefined);
      assert.deepEqual(asked().slice(before), [listed('1')]);
      cache.hasSynced = true;
      await clock.advance(500);
      assert.equal(state.arrived, true);
    });

    it('of a resource that the server does not have holds nobody up', async () => {
      const resource = { ...LEASES, group: 'example.com' };
      const synced = begin(new Cache('1', { resource }));
      const never = new Cache('1', { resource });
      never.hasSynced = false;
      const waiting = begin(never);
      await settle();
      assert.deepEqual([synced.arrived, waiting.arrived], [true, true]);
    });

    it('ahead of the server is fresh once it has listed again', async () => {
      for (const options of [{}, large]) {
        const cache = new Cache('1000', options);
        const state = begin(cache);
        await clock.advance(5000);
        assert.deepEqual([state.arrived, cache.mustRelist], [undefined, true]);
        await cache.listAgain();
        await clock.advance(500);
        assert.equal(state.arrived, true);
      }
    });

    it('is not waited for when there is no more use in it', async () => {
      for (const options of [{}, large]) {
        const cache = new Cache(await change(`a-${options === large}`), options);
        await change(`b-${options === large}`);
        const stop = new AbortController();
        const state = begin(cache, stop.signal);
        await clock.advance(1500);
        stop.abort();
        await settle();
        assert.equal(state.arrived, false);
        assert.equal(begin(cache, AbortSignal.abort()).arrived, undefined);
        await settle();
        assert.equal(clock.pending, 0);
      }
    });
  });

  describe('a cache of some thousand objects at most', () => {
    it('that shows what is there is fresh at once, though it knows of no revision', async () => {
      for (const name of ['a', 'b', 'c']) await change(name);
      const cache = await current();
      await changeElsewhere('x');
      const before = asked().length;
      const state = begin(cache);
      await settle();
      assert.equal(state.arrived, true);
      assert.deepEqual(asked().slice(before), [listed('5000')]);
      assert.match(accepted.at(-1) ?? '', /PartialObjectMetadataList/);
    });

    it('without any is fresh at once where there are none', async () => {
      await changeElsewhere('x');
      const state = begin(await current());
      await settle();
      assert.equal(state.arrived, true);
    });

    for (const [what, happen] of [
      ['lacks an object', () => change('new')],
      [
        'shows an older state',
        () => client.patch(LEASES, at('a'), { type: 'merge', body: { spec: { strategy: 'x' } } }),
      ],
      ['shows what is gone', () => client.delete(LEASES, at('a'))],
      [
        'shows what another of its name has replaced',
        async () => {
          await client.delete(LEASES, at('a'));
          await change('a');
        },
      ],
    ] as const) {
      it(`that ${what} is fresh when it no longer does`, async () => {
        await change('a');
        await change('b');
        const cache = await current();
        await happen();
        const state = begin(cache);
        await clock.advance(1500);
        assert.equal(state.arrived, undefined);
        await cache.fill();
        await clock.advance(500);
        assert.equal(state.arrived, true);
      });
    }

    it('need not show what changed after the read, and may', async () => {
      await change('a');
      const [behind, ahead] = [await current(), await current()];
      await changeElsewhere('x');
      const late = new Deferred();
      const remove = server.faults.afterRequest(() => late.promise.then(() => undefined));
      const states = [begin(behind), begin(ahead)];
      await settle();
      remove();
      await change('b');
      await ahead.fill();
      late.resolve();
      await settle();
      assert.deepEqual(
        states.map(({ arrived }) => arrived),
        [true, true],
      );
    });

    it('that cannot show an object, whatever it is, is asked for by the revision after two seconds', async () => {
      const cache = new Cache(await change('refused'));
      await changeElsewhere('x');
      const state = begin(cache);
      await clock.advance(2000);
      assert.equal(state.arrived, undefined);
      await clock.advance(2000);
      assert.equal(cache.mustRelist, true, 'there is no later change');
      await cache.listAgain();
      await clock.advance(500);
      assert.equal(state.arrived, true);
    });

    it('that shows another history than the server has is fresh once it has listed again', async () => {
      await change('kept');
      const snapshot = server.faults.snapshot();
      await change('lost');
      const cache = await current();
      cache.lastSyncResourceVersion = String(server.revision);
      server.faults.restore(snapshot);
      for (const name of ['x', 'y', 'z']) await changeElsewhere(name);
      const state = begin(cache);
      await clock.advance(5000);
      assert.deepEqual([state.arrived, cache.mustRelist], [undefined, true]);
      await cache.listAgain();
      await clock.advance(500);
      assert.equal(state.arrived, true);
    });
  });

  describe('a larger cache', () => {
    it('of which nothing has changed is fresh once that is known, a second later', async () => {
      const cache = new Cache(await change('a'), large);
      await changeElsewhere('x');
      const state = begin(cache);
      await clock.advance(999);
      assert.equal(state.arrived, undefined);
      await clock.advance(1);
      assert.equal(state.arrived, true);
      assert.equal(asked().length, 2);
    });

    it('that lags is fresh when it shows the last change before the read', async () => {
      const cache = new Cache(await change('a'), large);
      await change('b');
      const last = await change('c');
      await changeElsewhere('x');
      const state = begin(cache);
      await clock.advance(10_000);
      assert.equal(state.arrived, undefined);
      cache.lastSyncResourceVersion = last;
      await clock.advance(500);
      assert.equal(state.arrived, true);
    });

    it('need not show what changed after the read', async () => {
      const cache = new Cache(await change('a'), large);
      await changeElsewhere('x');
      const state = begin(cache);
      await settle();
      await change('b');
      await settle();
      assert.equal(state.arrived, true, 'that change alone proves that there was none before');
    });

    it('is asked again while the server gives no answer, also on the way', async () => {
      const cache = new Cache(await change('a'), large);
      await changeElsewhere('x');
      for (const verb of ['list', 'list', 'watch']) {
        server.faults.failNext({ verb, resource: 'leases' }, 500);
      }
      const state = begin(cache);
      await clock.advance(5000);
      assert.equal(state.arrived, true);
      assert.equal(asked().length, 6);
    });

    it('whose history is gone is asked for when it has listed anew', async () => {
      const cache = new Cache(await change('a'), large);
      await change('b');
      server.faults.expireHistory();
      const state = begin(cache);
      await clock.advance(5000);
      assert.equal(state.arrived, undefined);
      cache.lastSyncResourceVersion = await change('c');
      await clock.advance(5000);
      assert.equal(state.arrived, true);
    });

    it('may turn out to be large by what is read', async () => {
      await change('a');
      const cache = await current();
      await changeElsewhere('x');
      const { source } = cache;
      cache.source = {
        list: async (request) => ({ ...(await source.list(request)), continueToken: 'more' }),
        watch: (request) => source.watch(request),
      };
      const state = begin(cache);
      await settle();
      assert.equal(state.arrived, undefined, 'the rest is not known');
    });
  });
});
