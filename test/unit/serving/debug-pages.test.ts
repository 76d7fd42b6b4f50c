import assert from 'node:assert/strict';
import { beforeEach, describe, it, test } from 'node:test';
import { ApiError } from '../../../src/api/api-error.ts';
import type { Lease } from '../../../src/api/builtin.ts';
import { ReflectorProgress } from '../../../src/cache/progress.ts';
import {
  cachePage,
  ObservedLeases,
  reportPage,
  statusPage,
} from '../../../src/serving/debug-pages.ts';
import type { ShownInformer, StatusPageDeps } from '../../../src/serving/debug-pages.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { keyOf } from '../../../src/api/object-key.ts';
import { Indexer } from '../../../src/cache/indexer.ts';
import { IndexLister } from '../../../src/cache/lister.ts';
import { thing } from '../../support/fake-source.ts';
import type { Thing } from '../../support/fake-source.ts';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { redactText } from '../../../src/util/redact.ts';

const lease = (name: string, holderIdentity?: string): Lease => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { namespace: 'sys', name, uid: '', resourceVersion: '1', creationTimestamp: '' },
  spec: { ...(holderIdentity !== undefined && { holderIdentity }), acquireTime: '2026-01-01' },
});

describe('the status page', () => {
  let clock: FakeClock;
  let pods: ReflectorProgress;
  let informers: ShownInformer[];

  beforeEach(() => {
    clock = new FakeClock();
    pods = new ReflectorProgress(clock, 60_000);
    informers = [{ name: 'pods', hasSynced: true, progress: pods, lister: { size: 7 } }];
  });

  const ask = (more: Partial<StatusPageDeps> = {}) => {
    const deps = { clock, name: 'web', version: 'v1', informers: () => informers, ...more };
    const page = statusPage(deps).get('/debug/status') ?? assert.fail();
    return () => JSON.parse(page(new URLSearchParams()).body) as Record<string, unknown>;
  };

  it('reports the uptime and the state of the informers', async () => {
    const status = ask();
    pods.listed();
    pods.enter('watching');
    await clock.advance(2500);
    const { now, process: usage, ...rest } = status();
    const { residentBytes = 0, heapBytes = 0 } = usage as Record<string, number>;
    assert.ok(residentBytes > heapBytes && heapBytes > 0);
    assert.equal(now, new Date(clock.now()).toISOString());
    assert.deepEqual(rest, {
      name: 'web',
      version: 'v1',
      upMs: 2500,
      informers: [
        {
          name: 'pods',
          state: 'watching',
          stateForMs: 2500,
          hasSynced: true,
          inactiveMs: 2500,
          objects: 7,
        },
      ],
    });
  });

  it('escapes characters that could control a terminal', () => {
    const name = 'a\u001b[2J\u009b\u202e\u200b';
    const deps = { clock, name, version: 'v1', informers: () => [] };
    const { body = '' } = statusPage(deps).get('/debug/status')?.(new URLSearchParams()) ?? {};
    assert.match(body, /^[ -~\n]*$/);
    assert.equal(JSON.parse(body).name, name);
  });

  it('reports informers that are stale, fail, or wait for a missing resource', async () => {
    const counts = new ReflectorProgress(clock, 60_000);
    const foos = new ReflectorProgress(clock, 60_000);
    foos.failed(new ApiError({ kind: 'forbidden', message: 'secret', code: 403 }));
    counts.missing = true;
    informers.push(
      { name: 'counts', hasSynced: false, progress: counts, lister: { size: 0 } },
      { name: 'foos', hasSynced: false, progress: foos, lister: { size: 0 } },
    );
    const status = ask();
    await clock.advance(1);
    const states = () =>
      (status()['informers'] as { state: string; error?: string }[]).map(({ state, error }) => [
        state,
        error,
      ]);
    assert.deepEqual(states(), [
      ['idle', undefined],
      ['missing', undefined],
      ['idle', 'forbidden'],
    ]);
    await clock.advance(60_001);
    assert.deepEqual(states()[0], ['stale', undefined]);
  });

  it('reports the holders of the Leases, and masks credentials', async () => {
    const sightings = new ObservedLeases(clock);
    sightings.observe(lease('shard-10', 'b'));
    sightings.observe(lease('shard-2', 'b'));
    await clock.advance(300);
    sightings.observe(lease('shard-2'));
    await clock.advance(4);
    const status = ask({
      election: { identity: 'hunter2_a', leases: () => sightings.all },
      redact: (text) => text.replace('hunter2', '***'),
    });
    const acquireTime = '2026-01-01';
    assert.deepEqual(status()['election'], {
      identity: '***_a',
      leases: [
        { lease: 'sys/shard-2', holder: '', acquireTime, seenMsAgo: 4 },
        { lease: 'sys/shard-10', holder: 'b', acquireTime, seenMsAgo: 304 },
      ],
    });
  });
});

describe('the cache page', () => {
  const cacheOf = (...names: readonly string[]) => {
    const cache = new Indexer<Thing>();
    for (const name of names) {
      const object = thing(name);
      object.metadata.annotations = { secret: 'canary' };
      cache.set(keyOf(object), object);
    }
    return cache;
  };
  const ask = (query: string, cache: Indexer<Thing> = cacheOf('y/c', 'x/b', 'x/a')) => {
    const page = cachePage(() => [{ name: 'things', lister: new IndexLister(cache) }]);
    const answer = page.get('/debug/cache')?.(new URLSearchParams(query)) ?? assert.fail();
    assert.doesNotMatch(answer.body, /canary/);
    const shown = JSON.parse(answer.body) as { keys?: readonly { key: string }[] };
    return { status: answer.status, ...shown, keys: shown.keys?.map(({ key }) => key) };
  };

  it('lists the resources with the number of objects', () => {
    assert.deepEqual(ask(''), {
      status: 200,
      resources: [{ resource: 'things', objects: 3 }],
      keys: undefined,
    });
  });

  it('lists only keys and resourceVersions of a resource, optionally of one namespace', () => {
    assert.deepEqual(ask('resource=things').keys, ['x/a', 'x/b', 'y/c']);
    assert.deepEqual(ask('resource=things&namespace=x').keys, ['x/a', 'x/b']);
    assert.deepEqual(ask('resource=things&namespace=z').keys, []);
    assert.equal(ask('resource=others').status, 404);
  });

  it('lists at most 1000 objects', () => {
    const names = Array.from({ length: 1500 }, (_, index) => `x/${String(index).padStart(4, '0')}`);
    const shown = ask('resource=things', cacheOf(...names));
    assert.deepEqual(shown.keys, names.slice(0, 1000));
    assert.equal((shown as { objects?: number }).objects, 1500);
  });
});

it('the report describes this process, without its environment', async () => {
  // The report of each worker thread has the environment as well.
  const worker = new Worker('setInterval(() => undefined, 1000)', { eval: true });
  await once(worker, 'online');
  process.env['REPORT_PAGE_TEST'] = 'canary';
  try {
    const page = reportPage(redactText).get('/debug/report') ?? assert.fail();
    const { status, body } = page(new URLSearchParams());
    assert.equal(status, 200);
    assert.doesNotMatch(body, /canary|REPORT_PAGE_TEST/);
    const report = JSON.parse(body) as { header: { processId: number }; javascriptHeap: object };
    assert.equal(report.header.processId, process.pid);
    assert.ok(report.javascriptHeap);
  } finally {
    delete process.env['REPORT_PAGE_TEST'];
    await worker.terminate();
  }
});

it('the report masks credentials like the log', () => {
  const report = {
    getReport: () => ({ header: { commandLine: ['--master=https://u:secret@x'] } }),
  };
  const page = reportPage(redactText, report).get('/debug/report') ?? assert.fail();
  assert.doesNotMatch(page(new URLSearchParams()).body, /secret/);
});

function aLease(name: string, spec?: Lease['spec']): Lease {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace: 'shop', uid: name, resourceVersion: '1', creationTimestamp: '' },
    ...(spec ? { spec } : {}),
  };
}

test('lists each Lease in its last observed state, in numerical order, with the time since then', async () => {
  const clock = new FakeClock();
  const sightings = new ObservedLeases(clock);
  sightings.observe(aLease('x-10', { holderIdentity: 'a', acquireTime: 'then' }));
  await clock.advance(1000);
  sightings.observe(aLease('x-2', { holderIdentity: 'b' }));
  sightings.observe(aLease('x-1'));
  await clock.advance(500);
  sightings.observe(aLease('x-2', { holderIdentity: 'c' }));
  assert.deepEqual(sightings.all, [
    { lease: 'shop/x-1', holder: '', acquireTime: undefined, seenMsAgo: 500 },
    { lease: 'shop/x-2', holder: 'c', acquireTime: undefined, seenMsAgo: 0 },
    { lease: 'shop/x-10', holder: 'a', acquireTime: 'then', seenMsAgo: 1500 },
  ]);
});
