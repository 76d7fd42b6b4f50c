import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { ApiError } from '../../../src/api/api-error.ts';
import { PODS } from '../../../src/api/builtin.ts';
import { objectKey } from '../../../src/api/object-key.ts';
import { InformerSet } from '../../../src/cache/informer-set.ts';
import type { Client } from '../../../src/client/client.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { Controller } from '../../../src/manager/controller.ts';
import type { Source, SyncHandler } from '../../../src/manager/controller-options.ts';
import { KeyChannel } from '../../../src/manager/key-channel.ts';
import type { Sharding } from '../../../src/manager/controller-options.ts';
import { reconcileMetrics } from '../../../src/metrics/reconcile-metrics.ts';
import { createRegistry } from '../../../src/metrics/registry.ts';
import type { Registry } from '../../../src/metrics/registry.ts';
import { workqueueMetrics } from '../../../src/metrics/workqueue-metrics.ts';
import type { ShardHandler } from '../../../src/sharding/shards.ts';
import { Deferred } from '../../../src/util/deferred.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';
import { runAll } from '../../../src/util/runnable.ts';
import { formatCause } from '../../../src/workqueue/queue-item.ts';
import { done, requeueAt } from '../../../src/workqueue/outcome.ts';
import { recordingLogger } from '../../support/recording-logger.ts';

const AT = { namespace: 'default', name: 'web' };

describe('a controller', () => {
  let clock: FakeClock;
  let client: Client;
  let log: ReturnType<typeof recordingLogger>;
  /** Delay of watch events, in milliseconds. */
  let lagMs: number;
  let registry: Registry;
  let stop: () => Promise<void>;

  beforeEach(() => {
    clock = new FakeClock();
    log = recordingLogger();
    lagMs = 0;
    registry = createRegistry();
    stop = () => Promise.resolve();
    const server = new ApiServer({ clock });
    client = new HttpClient({
      clock,
      server: 'https://simulated',
      handler: async (request) => {
        const response = await server.handler(request);
        if (!request.path.includes('watch=true')) return response;
        return { ...response, body: delayed(response.body, request.signal) };
      },
    });
  });
  afterEach(() => stop());

  async function* delayed(
    body: AsyncIterable<Uint8Array>,
    signal?: AbortSignal,
  ): AsyncIterable<Uint8Array> {
    for await (const chunk of body) {
      await clock.sleep(lagMs, signal);
      yield chunk;
    }
  }

  /** Starts a controller of Pods, and creates a Pod. */
  async function start(
    sync: SyncHandler,
    configure: (controller: Controller) => void = () => undefined,
  ): Promise<void> {
    const informers = new InformerSet(client, { clock });
    const metrics = {
      workqueue: workqueueMetrics(registry),
      reconcile: reconcileMetrics(registry),
    };
    let drawn = 0;
    const random = () => (drawn += 1 / 1024);
    const deps = { client, clock, log: log.log, random, metrics };
    const pods = informers.for(PODS);
    const controller = new Controller(deps, { name: 'test', kind: PODS.kind, sync }).for(pods);
    configure(controller);
    const abort = new AbortController();
    const running = runAll(
      [(signal) => informers.run(signal), (signal) => controller.run(signal)],
      abort.signal,
    );
    stop = async () => {
      abort.abort();
      await clock.advance(1000);
      await running;
    };
    // The informer has read the empty collection, so that the Pod arrives as a change.
    await settle();
    await client.create(PODS, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: AT,
      spec: { containers: [{ name: 'app', image: 'nginx' }] },
    });
  }

  /** The attempt and the backoff of each logged failure. */
  const retries = () =>
    log.lines
      .filter(({ message, fields }) => message.startsWith('Error syncing') && !('times' in fields))
      .map(({ fields }) => `${String(fields['attempt'])}: ${String(fields['requeueAfter'])}`);

  // upstream: 92
  it('backs off failed syncs, also if each of them writes and waits for the cache', async () => {
    lagMs = 30;
    let runs = 0;
    await start(async (_, context) => {
      const labels = { run: String(runs++) };
      const patch = { type: 'merge', body: { metadata: { labels } } } as const;
      await context.client.patch(PODS, AT, patch, { signal: context.signal });
      throw new Error('quota exceeded');
    });
    await clock.advance(5000);
    const seen = retries();
    assert.deepEqual(seen.slice(0, 4), ['1: 5ms', '2: 10ms', '3: 20ms', '4: 40ms']);
    assert.ok(seen.length > 4, String(seen.length));
  });

  it('retries five conflicts without a log line, then logs them and backs off', async () => {
    let runs = 0;
    await start(() => {
      runs++;
      return Promise.reject(new ApiError({ kind: 'conflict', message: 'modified', code: 409 }));
    });
    await clock.advance(1500);
    assert.deepEqual([runs, retries()], [5, []]);
    await clock.advance(60_000);
    assert.deepEqual(retries().slice(0, 3), ['1: 5ms', '2: 10ms', '3: 20ms']);
    assert.ok(runs < 30, String(runs));
  });

  it('syncs an object at a time of the wall clock, also if the clock jumps', async () => {
    let dueMs = clock.now() + 3_600_000;
    const runs: string[] = [];
    await start(async (_, { causes }) => {
      runs.push(formatCause(causes.at(-1)!));
      return clock.now() < dueMs ? requeueAt(dueMs, 'it is due') : done();
    });
    await clock.advance(60_000);
    clock.jump(-600_000);
    await clock.advance(1000);
    clock.jump(4_200_000);
    await clock.advance(1000);
    assert.deepEqual(runs.splice(0), ['Pod default/web added', 'Clock jumped', 'Clock jumped']);
    // Nothing waits for a time any more.
    clock.jump(86_400_000);
    await clock.advance(10_000);
    assert.deepEqual(runs, []);
    dueMs = clock.now() + 1000;
    const patch = { type: 'merge', body: { metadata: { labels: { a: 'b' } } } } as const;
    await client.patch(PODS, AT, patch);
    await clock.advance(2000);
    assert.deepEqual(runs, [
      'Pod default/web changed: .metadata.labels',
      'requeued as planned: it is due',
    ]);
  });

  it('syncs keys that a channel passes while it runs', async () => {
    const channel = new KeyChannel();
    const runs: string[] = [];
    const sync: SyncHandler = async (key, { causes }) => {
      runs.push(`${key}: ${causes.map(formatCause).join()}`);
      return done();
    };
    channel.add(objectKey('default', 'early'));
    await start(sync, (controller) => void controller.source(channel.source));
    await clock.advance(1000);
    channel.add(objectKey('default', 'pushed'), { cause: 'webhook' });
    await clock.advance(1000);
    assert.deepEqual(runs, ['default/web: Pod default/web added', 'default/pushed: webhook']);
    await stop();
    stop = () => Promise.resolve();
    channel.add(objectKey('default', 'late'));
    await clock.advance(1000);
    assert.equal(runs.length, 2);
  });

  it('restarts a source that fails with backoff, if asked to', async () => {
    const starts: number[] = [];
    const source: Source = async (_, signal) => {
      starts.push(clock.monotonic());
      if (starts.length === 3) await clock.sleep(300_000, signal);
      if (!signal.aborted) throw new Error('connection reset');
    };
    await start(
      async () => done(),
      (controller) => void controller.source(source, { restarts: true }),
    );
    await clock.advance(400_000);
    const gaps = starts.slice(1).map((ms, index) => ms - (starts[index] ?? 0));
    const [first = 0, second = 0, afterSleep = 0] = gaps;
    assert.ok(first >= 800 && first < 1600, String(first));
    assert.ok(second >= 1600 && second < 3200, String(second));
    assert.ok(afterSleep < 301_600, 'a source that ran for long starts with the first delay');
    assert.ok(log.lines.some(({ message }) => message === 'Source failed; restarting it'));
  });

  it('logs causes, API calls and result of each sync in one line, and its reconcileID in all lines', async () => {
    lagMs = 30;
    await start(async (_, context) => {
      context.log.info('Syncing');
      const patch = { type: 'merge', body: { metadata: { labels: { seen: 'yes' } } } } as const;
      await context.client.patch(PODS, AT, patch, { signal: context.signal });
      return done();
    });
    await clock.advance(1000);
    const lines = log.lines
      .filter(({ message }) => message === 'Finished syncing' || message === 'Syncing')
      .map(({ level, message, fields: { controller: _c, pod: _p, ...fields } }) => [
        level,
        message,
        fields,
      ]);
    const calls = ['patch pods default/web ok 0ms'];
    const [first, second] = ['00400000', '00800000'];
    const common = { queued: '0s', duration: '0s' };
    const changed = 'Pod default/web changed: .metadata.labels';
    assert.deepEqual(lines, [
      [0, 'Syncing', { reconcileID: first }],
      [
        4,
        'Finished syncing',
        { ...common, reconcileID: first, result: 'done', causes: ['Pod default/web added'], calls },
      ],
      [0, 'Syncing', { reconcileID: second }],
      [
        4,
        'Finished syncing',
        { ...common, reconcileID: second, result: 'done', causes: [changed], calls },
      ],
    ]);
  });

  it('counts syncs that were postponed because the cache lags, and keeps their causes', async () => {
    lagMs = 200;
    const seen: (readonly string[])[] = [];
    await start(async (_, context) => {
      seen.push(context.causes.map(formatCause));
      if (seen.length > 1) return done();
      const patch = { type: 'merge', body: { metadata: { labels: { seen: 'yes' } } } } as const;
      await context.client.patch(PODS, AT, patch, { signal: context.signal });
      throw new Error('quota exceeded');
    });
    await clock.advance(1000);
    assert.deepEqual(seen[1], [
      'retry after an error: quota exceeded',
      'postponed: waiting for a cache to show own writes (3 times)',
      'Pod default/web changed: .metadata.labels',
    ]);
    const last = log.lines.findLast(({ message }) => message === 'Finished syncing')?.fields ?? {};
    assert.deepEqual(
      [last['attempt'], last['delayed'], last['postponed']],
      [2, '45ms', ['waiting for a cache to show own writes: 195ms (3 times)']],
    );
    const metric = await registry.getSingleMetric('crd_controller_stale_requeues_total')?.get();
    assert.deepEqual(
      metric?.values.map(({ labels, value }) => [labels['controller'], value]),
      [['test', 3]],
    );
  });

  it('rejects with the error of a failed source, and stops the other sources', async () => {
    const informers = new InformerSet(client, { clock });
    const ended: string[] = [];
    const controller = new Controller(
      { client, clock, log: log.log },
      { name: 'test', kind: PODS.kind, sync: async () => done() },
    )
      .for(informers.for(PODS))
      .source(async (_, signal) => {
        await clock.sleep(60_000, signal);
        ended.push('first');
      })
      .source(async () => {
        await clock.sleep(1000);
        throw new Error('the source failed');
      });
    const abort = new AbortController();
    const caches = informers.run(abort.signal);
    const running = controller.run(abort.signal).then(
      () => 'ended',
      (error: unknown) => String(error),
    );
    await clock.advance(5000);
    assert.match(await running, /the source failed/);
    assert.deepEqual(ended, ['first']);
    abort.abort();
    await clock.advance(1000);
    await caches;
  });

  it('lets namespaces take turns, so that many keys of one do not delay another', async () => {
    const runs: string[] = [];
    const controller = new Controller(
      { client, clock, log: log.log },
      {
        name: 'test',
        kind: PODS.kind,
        concurrency: 1,
        sync: async (key) => {
          runs.push(key);
          return done();
        },
      },
    ).source(async (queue, signal) => {
      for (const [namespace, name] of [
        ['a', '1'],
        ['a', '2'],
        ['a', '3'],
        ['b', '1'],
      ] as const) {
        queue.add(objectKey(namespace, name));
      }
      await clock.sleep(60_000, signal);
    });
    const abort = new AbortController();
    const running = controller.run(abort.signal);
    await clock.advance(5000);
    assert.ok(runs.indexOf('b/1') <= 2, runs.join());
    assert.equal(runs.length, 4);
    abort.abort();
    await clock.advance(1000);
    await running;
  });

  it('has the concurrency of its kit, unless its options have another', async () => {
    for (const [option, expected] of [
      [undefined, 2],
      [3, 3],
    ] as const) {
      let running = 0;
      let most = 0;
      const controller = new Controller(
        { client, clock, log: log.log, concurrency: 2 },
        {
          name: 'test',
          kind: PODS.kind,
          concurrency: option,
          sync: async (_, { signal }) => {
            running += 1;
            most = Math.max(most, running);
            await clock.sleep(1000, signal);
            running -= 1;
            return done();
          },
        },
      ).source(async (queue, signal) => {
        for (const name of ['1', '2', '3', '4']) queue.add(objectKey('a', name));
        await clock.sleep(60_000, signal);
      });
      const abort = new AbortController();
      const ended = controller.run(abort.signal);
      await clock.advance(10_000);
      assert.equal(most, expected);
      abort.abort();
      await clock.advance(1000);
      await ended;
    }
  });

  it('syncs keys that a source adds, with their causes', async () => {
    const informers = new InformerSet(client, { clock });
    const runs: string[] = [];
    const key = objectKey('default', 'other');
    const controller = new Controller(
      { client, clock, log: log.log },
      {
        name: 'test',
        kind: PODS.kind,
        sync: async (ran, { causes }) => {
          runs.push(`${ran}: ${causes.map((cause) => formatCause(cause)).join()}`);
          return done();
        },
      },
    )
      .for(informers.for(PODS))
      .source(async (queue, signal) => {
        queue.add(key, { cause: 'the source' });
        await clock.sleep(60_000, signal);
      });
    const abort = new AbortController();
    const all = [
      (signal: AbortSignal) => informers.run(signal),
      (signal: AbortSignal) => controller.run(signal),
    ];
    const running = runAll(all, abort.signal);
    await clock.advance(5000);
    assert.deepEqual(runs, ['default/other: the source']);
    abort.abort();
    await clock.advance(1000);
    await running;
  });
});

describe('a sharded controller', () => {
  it('releases a shard after its syncs in flight have ended, also failed ones', async () => {
    const clock = new FakeClock();
    const server = new ApiServer({ clock });
    const client = new HttpClient({ handler: server.handler, server: 'https://test', clock });
    const { log } = recordingLogger();
    const informers = new InformerSet(client, { clock });
    let serve: ShardHandler = () => Promise.resolve();
    const sharding: Sharding = {
      shardOf: () => 0,
      holds: () => true,
      onShard: (handler) => {
        serve = handler;
      },
    };
    const runs: string[] = [];
    const fail = new Deferred();
    const controller = new Controller(
      { client, clock, log, sharding },
      {
        name: 'test',
        kind: PODS.kind,
        sync: async (key, { causes }) => {
          runs.push(`${key}: ${causes.map((cause) => formatCause(cause)).join()}`);
          await fail.promise;
          throw new Error('the sync failed');
        },
      },
    ).for(informers.for(PODS));
    const abort = new AbortController();
    const all = [
      (signal: AbortSignal) => informers.run(signal),
      (signal: AbortSignal) => controller.run(signal),
    ];
    const running = runAll(all, abort.signal);
    await client.create(PODS, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: AT,
      spec: { containers: [{ name: 'app', image: 'nginx' }] },
    });
    await clock.advance(5000);
    assert.deepEqual(runs, [], 'keys of a shard that is not held are not synced');
    const shard = new AbortController();
    let isReleased = false;
    const served = Promise.resolve(serve(0, shard.signal)).then(() => (isReleased = true));
    await clock.advance(5000);
    assert.deepEqual(runs, ['default/web: its shard was taken over']);
    shard.abort();
    await clock.advance(1000);
    assert.equal(isReleased, false);
    fail.resolve();
    await clock.advance(1000);
    assert.equal(isReleased, true);
    await served;
    await clock.advance(60_000);
    assert.equal(runs.length, 1, 'the failed key is not retried by this replica');
    abort.abort();
    await clock.advance(1000);
    await running;
  });
});
