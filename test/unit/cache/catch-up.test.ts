import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { LEASES, NAMESPACES } from '../../../src/api/builtin.ts';
import type { Lease } from '../../../src/api/builtin.ts';
import type { Resource } from '../../../src/api/resource.ts';
import { compareResourceVersions } from '../../../src/api/resource-version.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { catchUp } from '../../../src/cache/catch-up.ts';
import type { Follower } from '../../../src/cache/catch-up.ts';
import { listerWatcher } from '../../../src/cache/lister-watcher.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';
import { silentLogger } from '../../../src/util/logger.ts';

let clock: FakeClock;
let server: ApiServer;
let client: HttpClient;

beforeEach(() => {
  clock = new FakeClock();
  server = new ApiServer({ clock });
  client = new HttpClient({ handler: server.handler, server: 'https://test', clock });
});

/** A cache of the Leases of one namespace that is as far as the test says. */
class Cache implements Follower {
  readonly name = 'leases';
  readonly source: Follower['source'];
  hasSynced = true;
  lastSyncResourceVersion: string;

  constructor(resourceVersion: string, resource: Resource<Lease> = LEASES) {
    this.lastSyncResourceVersion = resourceVersion;
    this.source = listerWatcher(client, resource, { namespace: 'default' });
  }

  hasReached(resourceVersion: string): boolean {
    return compareResourceVersions(this.lastSyncResourceVersion, resourceVersion) >= 0;
  }
}

/** @returns the resourceVersion of that change */
async function change(name: string): Promise<string> {
  const at = { namespace: 'default', name };
  const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: at };
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

describe('a cache', () => {
  it('as far as the server is fresh after one read of one object, from the quorum', async () => {
    await change('a');
    const state = begin(new Cache(await change('b')));
    await settle();
    assert.equal(state.arrived, true);
    assert.deepEqual(asked(), ['/apis/coordination.k8s.io/v1/namespaces/default/leases?limit=1']);
    assert.equal(clock.pending, 0);
  });

  it('of which nothing has changed is fresh once that is known, a second later', async () => {
    const cache = new Cache(await change('a'));
    await changeElsewhere('x');
    const state = begin(cache);
    await clock.advance(999);
    assert.equal(state.arrived, undefined);
    await clock.advance(1);
    assert.equal(state.arrived, true);
    assert.equal(asked().length, 2);
  });

  it('that lags is fresh when it shows the last change before the read', async () => {
    const cache = new Cache(await change('a'));
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
    const cache = new Cache(await change('a'));
    await changeElsewhere('x');
    const state = begin(cache);
    await settle();
    await change('b');
    await settle();
    assert.equal(state.arrived, true, 'that change alone proves that there was none before');
  });

  it('is not asked before it has synced', async () => {
    const cache = new Cache(await change('a'));
    cache.hasSynced = false;
    const state = begin(cache);
    await clock.advance(60_000);
    assert.equal(state.arrived, undefined);
    assert.equal(asked().length, 1);
    cache.hasSynced = true;
    await clock.advance(500);
    assert.equal(state.arrived, true);
  });

  it('of a resource that the server does not have holds nobody up', async () => {
    const state = begin(new Cache('1', { ...LEASES, group: 'example.com' }));
    await settle();
    assert.equal(state.arrived, true);
  });

  it('is asked again while the server gives no answer, also on the way', async () => {
    const cache = new Cache(await change('a'));
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
    const cache = new Cache(await change('a'));
    await change('b');
    server.faults.expireHistory();
    const state = begin(cache);
    await clock.advance(5000);
    assert.equal(state.arrived, undefined);
    cache.lastSyncResourceVersion = await change('c');
    await clock.advance(5000);
    assert.equal(state.arrived, true);
  });

  it('is not waited for when there is no more use in it', async () => {
    const cache = new Cache(await change('a'));
    await change('b');
    const stop = new AbortController();
    const state = begin(cache, stop.signal);
    await clock.advance(1500);
    stop.abort();
    await settle();
    assert.equal(state.arrived, false);
    assert.equal(begin(cache, AbortSignal.abort()).arrived, undefined);
    await settle();
    assert.equal(clock.pending, 0);
  });
});
