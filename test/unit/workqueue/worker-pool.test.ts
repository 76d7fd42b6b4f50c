import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { describe, test } from 'node:test';
import { createRegistry, expose } from '../../../src/metrics/registry.ts';
import { reconcileMetrics } from '../../../src/metrics/reconcile-metrics.ts';
import { workqueueMetrics } from '../../../src/metrics/workqueue-metrics.ts';
import { AbruptStop } from '../../../src/util/runnable.ts';
import { Deferred } from '../../../src/util/deferred.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';
import { formatCause } from '../../../src/workqueue/queue-item.ts';
import { done, postpone, requeueAfter, TerminalError } from '../../../src/workqueue/outcome.ts';
import type { Outcome } from '../../../src/workqueue/outcome.ts';
import { SLOW_KEY_BACKOFF } from '../../../src/workqueue/rate-limiter.ts';
import { LOW_PRIORITY, WorkQueue } from '../../../src/workqueue/work-queue.ts';
import { WorkerPool } from '../../../src/workqueue/worker-pool.ts';
import type { KeyHandler, WorkerPoolOptions } from '../../../src/workqueue/worker-pool.ts';
import { recordingLogger } from '../../support/recording-logger.ts';

/** Running pool; `stop` ends it. */
function startPool(handler: KeyHandler<string>, options: WorkerPoolOptions<string> = {}) {
  const clock = new FakeClock();
  const { log, lines } = recordingLogger();
  const queue = new WorkQueue<string>({ name: 'count', clock });
  const registry = createRegistry();
  let drawn = 0;
  const pool = new WorkerPool(
    { name: 'count', queue, handler, clock, log, random: () => (drawn += 1 / 64) },
    { keyName: 'count', metrics: reconcileMetrics(registry), ...options },
  );
  const abort = new AbortController();
  const running = pool.run(abort.signal);
  let hasEnded = false;
  const ended = running.finally(() => (hasEnded = true));
  return {
    clock,
    queue,
    errors: () => lines.filter((line) => line.level === 'error'),
    /** Each failure, as logged at `-v=4`. */
    failures: () =>
      lines
        .filter(
          ({ message, fields }) => message.startsWith('Error syncing') && !('times' in fields),
        )
        .map(({ error, fields: { err, ...fields }, message }) => ({
          message,
          fields,
          error: error ?? err,
        })),
    lines,
    hasEnded: () => hasEnded,
    abort: () => abort.abort(),
    stop: async () => {
      abort.abort();
      await ended;
    },
    metric: async (name: string) => {
      const metric = await registry.getSingleMetric(`controller_runtime_${name}`)?.get();
      return Object.fromEntries(
        metric?.values.map(({ labels, value }) => [labels['result'] ?? 'value', value]) ?? [],
      );
    },
  };
}

test('calls the handler with key, causes and a logger with key and reconcileID', async () => {
  const seen: unknown[] = [];
  const ids: string[] = [];
  const pool = startPool(async (key, { causes, log, signal, reconcileID }) => {
    seen.push({ key, causes: causes.map(formatCause), aborted: signal.aborted });
    ids.push(reconcileID);
    log.info('Syncing');
    return done();
  });
  pool.queue.add('default/web', { cause: 'Count changed' });
  await settle();
  assert.deepEqual(seen, [{ key: 'default/web', causes: ['Count changed'], aborted: false }]);
  pool.queue.add('default/web');
  await settle();
  assert.match(ids[0] ?? '', /^[0-9a-f]{8}$/);
  assert.notEqual(ids[0], ids[1]);
  assert.deepEqual(
    pool.lines.filter(({ message }) => message === 'Syncing').map(({ fields }) => fields),
    ids.map((reconcileID) => ({ controller: 'count', count: 'default/web', reconcileID })),
  );
  await pool.stop();
});

test('runs as many syncs as there are workers and leaves other keys in the queue', async () => {
  const gate = new Deferred();
  const running: string[] = [];
  const pool = startPool(
    async (key) => {
      running.push(key);
      await gate.promise;
      return done();
    },
    { concurrency: 2 },
  );
  for (const key of ['a', 'b', 'c', 'd']) pool.queue.add(key);
  await settle();
  assert.deepEqual(running, ['a', 'b']);
  assert.equal(pool.queue.length, 2);
  pool.queue.add('d', { priority: 1 });
  gate.resolve();
  await settle();
  assert.deepEqual(running, ['a', 'b', 'd', 'c']);
  await pool.stop();
});

test('never syncs a key twice at once', async () => {
  let atOnce = 0;
  let most = 0;
  const pool = startPool(
    async () => {
      most = Math.max(most, ++atOnce);
      await settle(2);
      atOnce--;
      return done();
    },
    { concurrency: 5 },
  );
  for (let i = 0; i < 20; i++) {
    pool.queue.add('a');
    await settle(1);
  }
  await pool.stop();
  assert.equal(most, 1);
});

// upstream: 92
test('logs an error once, counts it and retries with backoff until a success', async () => {
  let failures = 3;
  const runs: number[] = [];
  const pool = startPool(async () => {
    runs.push(pool.clock.monotonic());
    if (failures-- > 0) throw new Error('no such image');
    return done();
  });
  pool.queue.add('default/web');
  await pool.clock.advance(1000);
  assert.deepEqual(runs, [0, 5, 15, 35]);
  assert.equal(pool.queue.retries('default/web'), 0);
  assert.deepEqual(
    pool.failures().map(({ message, fields: { reconcileID: _, ...fields }, error }) => ({
      message,
      fields,
      error: String(error),
    })),
    [
      ['5ms', 1],
      ['10ms', 2],
      ['20ms', 3],
    ].map(([requeueAfter, attempt]) => ({
      message: 'Error syncing; requeuing for later retry',
      fields: { controller: 'count', count: 'default/web', attempt, requeueAfter },
      error: 'Error: no such image',
    })),
  );
  assert.deepEqual(await pool.metric('reconcile_total'), {
    success: 1,
    error: 3,
    requeue: 0,
    requeue_after: 0,
  });
  assert.deepEqual(await pool.metric('reconcile_errors_total'), { value: 3 });
  await pool.stop();
});

// upstream: 92a
test('logs and counts a terminal error without a retry or backoff', async () => {
  let runs = 0;
  const pool = startPool(async () => {
    runs++;
    if (runs === 1) throw new Error('for now');
    throw new TerminalError('schedule is not a time');
  });
  pool.queue.add('default/web');
  await pool.clock.advance(600_000);
  assert.equal(runs, 2);
  assert.equal(pool.queue.retries('default/web'), 0);
  assert.deepEqual(
    pool.errors().map(({ message }) => message),
    ['Error syncing; requeuing for later retry', 'Error syncing; not retrying a terminal error'],
  );
  assert.match(String(pool.errors()[1]?.error), /schedule is not a time/);
  assert.equal(pool.errors()[1]?.fields['count'], 'default/web');
  assert.deepEqual(await pool.metric('terminal_reconcile_errors_total'), { value: 1 });
  assert.deepEqual(await pool.metric('reconcile_errors_total'), { value: 2 });
  pool.queue.add('default/web');
  await settle();
  assert.equal(runs, 3);
  await pool.stop();
});

// upstream: 92b, 92d
test('requeues after the delay, resets the backoff and keeps the priority', async () => {
  const outcomes: (Outcome | Error)[] = [
    new Error('once'),
    requeueAfter(60_000),
    requeueAfter(40_000, 'its schedule is due'),
    requeueAfter(10_000, 'it polls', { jitter: 0.5 }),
    done(),
  ];
  const runs: [at: number, causes: readonly string[]][] = [];
  const pool = startPool(async (_key, { causes }) => {
    runs.push([pool.clock.monotonic(), causes.map(formatCause)]);
    const outcome = outcomes.shift() ?? done();
    if (outcome instanceof Error) throw outcome;
    return outcome;
  });
  pool.queue.add('default/web', { priority: LOW_PRIORITY, cause: 'Count listed' });
  await pool.clock.advance(5);
  assert.equal(pool.queue.retries('default/web'), 0);
  assert.equal(pool.queue.snapshot().delayed[0]?.priority, LOW_PRIORITY);
  await pool.clock.advance(100_000);
  await pool.clock.advance(100_000);
  const [polledMs = 0] = runs.pop() ?? [];
  assert.ok(polledMs > 110_005, `the jitter extends the delay: ${polledMs}`);
  assert.deepEqual(runs, [
    [0, ['Count listed']],
    [5, ['retry after an error: once']],
    [60_005, ['requeued as planned']],
    [100_005, ['requeued as planned: its schedule is due']],
  ]);
  assert.equal((await pool.metric('reconcile_total'))['requeue_after'], 3);
  await pool.stop();
});

// upstream: 92e
test('treats a throw or a result without an outcome as an error of its key', async () => {
  // Results of untyped callers.
  const bad: (() => unknown)[] = [
    () => {
      throw new Error('thrown before any promise');
    },
    () => undefined,
    async () => ({ kind: 'requeueAfter', ms: 'soon' }),
    async () => ({ kind: 'requeueAt', atMs: Number.NaN }),
    async () => null,
    () => new Promise((_resolve, reject) => reject()),
  ];
  const handler = () => (bad.shift() ?? (async () => done()))();
  const pool = startPool(handler as KeyHandler<string>);
  pool.queue.add('bad');
  await pool.clock.advance(1000);
  pool.queue.add('good');
  await settle();
  assert.equal(pool.failures().length, 6);
  assert.match(
    String(pool.failures()[1]?.error),
    /returned undefined instead of an Outcome: .*return done\(\)/,
  );
  assert.deepEqual(await pool.metric('reconcile_panics_total'), { value: 4 });
  assert.deepEqual(await pool.metric('reconcile_total'), {
    success: 2,
    error: 6,
    requeue: 0,
    requeue_after: 0,
  });
  await pool.stop();
});

// upstream: 76
test('takes no key after a stop and lets syncs in flight finish', async () => {
  const gate = new Deferred();
  const finished: string[] = [];
  const pool = startPool(
    async (key, { signal }) => {
      await gate.promise;
      finished.push(`${key} ${signal.aborted}`);
      return requeueAfter(5);
    },
    { concurrency: 2 },
  );
  for (const key of ['a', 'b', 'c']) pool.queue.add(key);
  await settle();
  pool.abort();
  pool.queue.add('d');
  await pool.clock.advance(29_999);
  assert.equal(pool.hasEnded(), false);
  gate.resolve();
  await pool.stop();
  assert.deepEqual(finished, ['a false', 'b false']);
  assert.equal(pool.clock.pending, 0);
  assert.deepEqual(pool.errors(), []);
});

// upstream: 76a
test('aborts a sync after the drain timeout and does not count that as an error', async () => {
  const pool = startPool(
    async (_key, { signal }) => {
      await new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error));
      });
      return done();
    },
    { drainTimeoutMs: 2000 },
  );
  pool.queue.add('stuck');
  await settle();
  pool.abort();
  await pool.clock.advance(1999);
  assert.equal(pool.hasEnded(), false);
  await pool.clock.advance(1);
  await pool.stop();
  assert.deepEqual(
    pool.errors().map(({ message, fields }) => ({ message, keys: fields['keys'] })),
    [{ message: 'Syncs exceeded the drain timeout; aborting them', keys: ['stuck'] }],
  );
  assert.equal((await pool.metric('reconcile_total'))['error'], 0);
  assert.deepEqual(await pool.metric('active_workers'), { value: 0 });
});

test('logs an error during the drain without a retry', async () => {
  const gate = new Deferred();
  const pool = startPool(async () => {
    await gate.promise;
    throw new Error('conflict');
  });
  pool.queue.add('a');
  await settle();
  pool.abort();
  gate.resolve();
  await pool.stop();
  assert.deepEqual(
    pool.errors().map(({ message }) => message),
    ['Error syncing; not requeued because the process is stopping'],
  );
});

test('does not start a key that was taken at the moment of the stop', async () => {
  const pool = startPool(() => assert.fail('nothing may run'));
  await settle();
  pool.queue.add('a');
  await pool.stop();
  await pool.queue.idle();
  assert.deepEqual(pool.errors(), []);
});

test('counts the wait of keys from the start of the workers, as after a time in standby', async () => {
  const clock = new FakeClock();
  const registry = createRegistry();
  const queue = new WorkQueue<string>(
    { name: 'count', clock },
    { metrics: workqueueMetrics(registry) },
  );
  const waits: (readonly [key: string, queuedMs: number])[] = [];
  const handler = async () => {
    await clock.sleep(1000);
    return done();
  };
  const { log } = recordingLogger();
  const pool = new WorkerPool<string>(
    { name: 'count', queue, clock, log, handler },
    { onSyncEnd: ({ key, queuedMs }) => void waits.push([key, queuedMs]) },
  );
  const waiting = () => {
    const { ready, oldestReadyMs } = queue.snapshot();
    return [oldestReadyMs, ...ready.map(({ queuedMs }) => queuedMs)];
  };
  queue.add('first');
  queue.add('second');
  await clock.advance(55_000);
  assert.deepEqual(waiting(), [0, 0, 0]);
  const abort = new AbortController();
  const running = pool.run(abort.signal);
  await clock.advance(500);
  assert.deepEqual(waiting(), [500, 500]);
  queue.add('third');
  await clock.advance(5000);
  assert.deepEqual(waits, [
    ['first', 0],
    ['second', 1000],
    ['third', 1500],
  ]);
  assert.match((await expose(registry)).text, /^workqueue_queue_duration_seconds_sum.* 2\.5$/m);
  abort.abort();
  await running;
});

test('takes nothing if it was stopped before it runs', async () => {
  const clock = new FakeClock();
  const { log } = recordingLogger();
  const queue = new WorkQueue<string>({ name: 'count', clock });
  queue.add('a');
  const handler = () => assert.fail('nothing may run');
  const pool = new WorkerPool<string>({ name: 'count', queue, handler, clock, log });
  await pool.run(AbortSignal.abort());
});

test('leaves no listeners on the signal of a long run', async () => {
  const clock = new FakeClock();
  const { log } = recordingLogger();
  const queue = new WorkQueue<string>({ name: 'count', clock });
  const handler = async () => {
    await settle(1);
    return done();
  };
  const pool = new WorkerPool<string>({ name: 'count', queue, handler, clock, log });
  const abort = new AbortController();
  const running = pool.run(abort.signal);
  for (let i = 0; i < 5; i++) {
    queue.add(`key ${i}`);
    await settle();
  }
  assert.equal(getEventListeners(abort.signal, 'abort').length, 1);
  abort.abort();
  await running;
});

test('ends with the cause of an internal error, after the syncs in flight', async () => {
  const clock = new FakeClock();
  const queue = new WorkQueue<string>({ name: 'count', clock });
  const { log } = recordingLogger();
  const pool = new WorkerPool<string>({
    name: 'count',
    queue,
    clock,
    log,
    handler: async (key) => {
      queue.done(key);
      return done();
    },
  });
  queue.add('a');
  await assert.rejects(pool.run(new AbortController().signal), /was not in flight/);
});

test('creates the metrics of a controller before its first sync', async () => {
  const pool = startPool(async () => done(), { concurrency: 3 });
  assert.deepEqual(await pool.metric('reconcile_total'), {
    success: 0,
    error: 0,
    requeue: 0,
    requeue_after: 0,
  });
  assert.deepEqual(await pool.metric('max_concurrent_reconciles'), { value: 3 });
  assert.deepEqual(await pool.metric('active_workers'), { value: 0 });
  for (const name of [
    'reconcile_errors_total',
    'terminal_reconcile_errors_total',
    'reconcile_panics_total',
    'reconcile_timeouts_total',
  ]) {
    assert.deepEqual(await pool.metric(name), { value: 0 });
  }
  await pool.stop();
});

test('logs a sync in one line with its causes, delays, duration and result', async () => {
  const outcomes: Outcome[] = [requeueAfter(60_000), done()];
  const pool = startPool(async () => {
    await pool.clock.sleep(20);
    return outcomes.shift() ?? done();
  });
  const lines = () =>
    pool.lines
      .filter(({ level }) => level === 3 || level === 4)
      .map(({ level, message, fields: { controller: _c, reconcileID: _r, ...said } }) => [
        level,
        message,
        said,
      ]);
  pool.queue.add('busy');
  await pool.clock.advance(5);
  pool.queue.add('default/web', { cause: 'Count default/web changed' });
  await pool.clock.advance(100);
  assert.deepEqual(lines(), [
    [
      3,
      'Finished syncing',
      {
        count: 'busy',
        result: 'requeueAfter',
        duration: '20ms',
        queued: '0s',
        causes: [],
        requeueAfter: '1m0s',
      },
    ],
    [
      4,
      'Finished syncing',
      {
        count: 'default/web',
        result: 'done',
        duration: '20ms',
        queued: '15ms',
        causes: ['Count default/web changed'],
      },
    ],
  ]);
  await pool.stop();
});

test('keeps the causes of a postponed sync and logs its reason', async () => {
  const outcomes: Outcome[] = [postpone(50, 'the cache lags'), postpone(50, 'the cache lags')];
  const seen: (readonly string[])[] = [];
  const pool = startPool(async (_key, { causes }) => {
    seen.push(causes.map(formatCause));
    return outcomes.shift() ?? done();
  });
  pool.queue.add('default/web', { cause: 'Pod default/web-0 deleted' });
  await pool.clock.advance(50);
  pool.queue.add('default/web', { afterMs: 10, cause: 'Pod default/web-1 added' });
  await pool.clock.advance(1000);
  assert.deepEqual(seen, [
    ['Pod default/web-0 deleted'],
    ['Pod default/web-0 deleted', 'postponed: the cache lags'],
    ['Pod default/web-0 deleted', 'postponed: the cache lags (2 times)', 'Pod default/web-1 added'],
  ]);
  assert.equal(
    pool.lines.find(({ fields }) => fields['reason'] !== undefined)?.fields['reason'],
    'the cache lags',
  );
  await pool.stop();
});

test('calls onSyncEnd for each sync when its key is forgotten or requeued', async () => {
  const reports: unknown[] = [];
  const failure = new Error('quota exceeded');
  const pool = startPool(() => Promise.reject(failure), {
    onSyncEnd: ({ key, result, error, requeueAfterMs }) => {
      reports.push({ key, result, error, requeueAfterMs, retries: pool.queue.retries('a') });
    },
  });
  pool.queue.add('a');
  await pool.clock.advance(5);
  assert.deepEqual(reports, [
    { key: 'a', result: 'error', error: failure, requeueAfterMs: 5, retries: 1 },
    { key: 'a', result: 'error', error: failure, requeueAfterMs: 10, retries: 2 },
  ]);
  await pool.stop();
});

// upstream: 92h
test('aborts, counts and retries a sync that exceeds the timeout', async () => {
  const pool = startPool(
    async (key, { signal }) => {
      await pool.clock.sleep(key === 'slow' ? 60_000 : 1999, signal);
      if (signal.aborted) throw signal.reason;
      return done();
    },
    { syncTimeoutMs: 2000 },
  );
  pool.queue.add('quick');
  await pool.clock.advance(1999);
  pool.queue.add('slow');
  await pool.clock.advance(2000);
  assert.deepEqual(
    pool.errors().map(({ error, fields }) => [String(error), fields['count']]),
    [['TimeoutError: The sync took longer than 2s', 'slow']],
  );
  assert.deepEqual(await pool.metric('reconcile_timeouts_total'), { value: 1 });
  await pool.clock.advance(5);
  // The next attempt is in flight; a stop must abort it too.
  pool.abort();
  await pool.clock.advance(2000);
  await pool.stop();
  assert.equal(pool.clock.pending, 0);
});

test('rejects invalid options by name', () => {
  assert.throws(() => startPool(async () => done(), { syncTimeoutMs: 0 }), /^RangeError.*syncT/);
  assert.throws(() => startPool(async () => done(), { concurrency: 0 }), /^RangeError.*concur/);
  assert.throws(
    () => startPool(async () => done(), { drainTimeoutMs: Number.NaN }),
    /^RangeError.*drainTimeoutMs.*got NaN/,
  );
});

// upstream: 92
test('does not count a postponed sync as a success', async () => {
  let runs = 0;
  const pool = startPool(() => {
    if (runs++ % 2 === 1) return Promise.resolve(postpone(50));
    return Promise.reject(new Error('quota exceeded'));
  });
  pool.queue.add('default/web');
  await pool.clock.advance(250);
  assert.deepEqual(
    pool.failures().map(({ fields }) => fields['requeueAfter']),
    ['5ms', '10ms', '20ms', '40ms'],
  );
  await pool.stop();
});

// upstream: 92d
test('keeps the priority of a postponed sync', async () => {
  const pool = startPool(async () => postpone(50));
  pool.queue.add('listed', { priority: LOW_PRIORITY });
  pool.queue.add('raised', { priority: 5 });
  await settle();
  const { delayed } = pool.queue.snapshot();
  assert.deepEqual(Object.fromEntries(delayed.map(({ key, priority }) => [key, priority])), {
    listed: LOW_PRIORITY,
    raised: 5,
  });
  await pool.stop();
});

// upstream: 76a
test('aborts syncs at once on an abrupt stop', async () => {
  const clock = new FakeClock();
  const { log } = recordingLogger();
  const queue = new WorkQueue<string>({ name: 'count', clock });
  const seen: unknown[] = [];
  const handler: KeyHandler<string> = (_key, { signal }) =>
    new Promise((resolve) => {
      signal.addEventListener('abort', () => {
        seen.push(signal.reason);
        resolve(done());
      });
    });
  const pool = new WorkerPool<string>({ name: 'count', queue, handler, clock, log });
  const abort = new AbortController();
  const running = pool.run(abort.signal);
  queue.add('a');
  await settle();
  const reason = new AbruptStop('leadershipLost', 'the lease is lost');
  abort.abort(reason);
  await settle();
  assert.deepEqual(seen, [reason]);
  await running;
});

test('drops a key after too many retries until it is added again', async () => {
  const registry = createRegistry();
  const attempts: string[] = [];
  const ends: unknown[] = [];
  const pool = startPool(
    async (key) => {
      attempts.push(key);
      throw new Error('no room');
    },
    {
      maxRetries: 5,
      metrics: reconcileMetrics(registry),
      onSyncEnd: ({ requeueAfterMs, reason }) => ends.push(reason ?? requeueAfterMs),
    },
  );
  const dropped = async () =>
    (await registry.getSingleMetric('crd_controller_dropped_keys_total')?.get())?.values[0]?.value;
  pool.queue.add('default/web');
  await pool.clock.advance(60_000);
  assert.equal(attempts.length, 6);
  assert.deepEqual(ends, [5, 10, 20, 40, 80, 'dropped']);
  const { message, error, fields } = pool.failures().at(-1)!;
  assert.equal(message, 'Error syncing; dropping the key after too many retries');
  assert.equal(error instanceof Error && error.message, 'no room');
  assert.equal(fields['attempt'], 6);
  assert.equal(await dropped(), 1);
  await pool.clock.advance(3_600_000);
  assert.equal(attempts.length, 6);
  pool.queue.add('default/web');
  await pool.clock.advance(60_000);
  assert.equal(attempts.length, 12);
  assert.equal(await dropped(), 2);
  await pool.stop();
});

test('drops a key after its first failure if it permits no retry', async () => {
  let runs = 0;
  const failing = () => Promise.reject(new Error(`failure ${++runs}`));
  const pool = startPool(failing, { maxRetries: 0 });
  pool.queue.add('default/web');
  await pool.clock.advance(600_000);
  assert.equal(runs, 1);
  await pool.stop();
});

test('retries an error not before its minimum backoff', async () => {
  const delays: unknown[] = [];
  const pool = startPool(() => Promise.reject(new Error('quota exceeded')), {
    backoffOf: (error) => (String(error).includes('quota') ? SLOW_KEY_BACKOFF : undefined),
    onSyncEnd: ({ requeueAfterMs }) => delays.push(requeueAfterMs),
  });
  pool.queue.add('default/web');
  await pool.clock.advance(40_000);
  assert.deepEqual(delays, [5000, 10_000, 20_000, 40_000]);
  await pool.stop();
});

test('shortens a long error message in the cause of a retry', async () => {
  let text = '';
  const pool = startPool(async (_, { attempt, causes }) => {
    text = causes.map(formatCause).join();
    if (attempt === 1) throw new Error('x'.repeat(1000));
    return done();
  });
  pool.queue.add('default/web');
  await pool.clock.advance(1000);
  assert.match(text, /^retry after an error: x{120}…$/);
  await pool.stop();
});

test('rejects an invalid limit of retries', () => {
  for (const maxRetries of [-1, Number.NaN]) {
    assert.throws(() => startPool(async () => done(), { maxRetries }), /maxRetries/);
  }
});

describe('failures of many keys', () => {
  const refused = 'connection refused';
  const quiet = (keys: readonly string[], handler: KeyHandler<string>) => {
    const pool = startPool(handler, { concurrency: keys.length });
    for (const key of keys) pool.queue.add(key);
    return pool;
  };
  const webs = Array.from({ length: 100 }, (_, at) => `default/web-${at}`);

  test('logs failures of one cause in one line at once, and one a minute with the keys', async () => {
    let isDown = true;
    const pool = quiet(webs, async (key) => {
      if (isDown) throw new Error(`pods "${key.split('/')[1]}-0": ${refused}`);
      return done();
    });
    await settle();
    assert.equal(pool.errors().length, 1);
    assert.equal(pool.errors()[0]?.fields['count'], webs[0]);
    await pool.clock.advance(59_000);
    assert.equal(pool.errors().length, 1);
    isDown = false;
    await pool.clock.advance(120_000);
    const [, summary, ...others] = pool.errors();
    assert.deepEqual(others, []);
    assert.ok(Number(summary?.fields['times']) > 100, String(summary?.fields['times']));
    assert.equal(String(summary?.fields['keys']).split(', ').length, 10);
    assert.equal(summary?.fields['more'], 90);
    assert.ok(pool.failures().length > 100, 'each of them at -v=4');
    await pool.stop();
  });

  test('logs different causes in different lines', async () => {
    const pool = quiet(webs.slice(0, 3), async (key) => {
      throw new Error(key.endsWith('0') ? refused : `quota of ${key} exceeded`);
    });
    await settle();
    assert.equal(pool.errors().length, 2);
    await pool.stop();
  });

  test('logs suppressed failures at a stop', async () => {
    const pool = quiet(webs.slice(0, 3), () => Promise.reject(new Error(refused)));
    await settle();
    await pool.stop();
    assert.deepEqual(
      pool.errors().map(({ fields }) => fields['times']),
      [undefined, 2],
    );
  });
});
