import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';
import { LOW_PRIORITY, WorkQueue } from '../../../src/workqueue/work-queue.ts';
import type { WorkQueueOptions } from '../../../src/workqueue/work-queue.ts';
import { MAX_CAUSES } from '../../../src/workqueue/queue-item.ts';

function newQueue(options: WorkQueueOptions<string> = {}) {
  const clock = new FakeClock();
  return { clock, queue: new WorkQueue<string>({ name: 'test', clock }, options) };
}

/** Takes all ready keys and calls done. */
function drain(queue: WorkQueue<string>): string[] {
  const keys: string[] = [];
  for (let taken = queue.tryTake(); taken; taken = queue.tryTake()) {
    keys.push(taken.key);
    queue.done(taken.key);
  }
  return keys;
}

// upstream: 75a
test('returns a key that was added several times once', () => {
  const { queue } = newQueue();
  for (const key of ['a', 'b', 'a', 'a']) queue.add(key);
  assert.equal(queue.length, 2);
  assert.deepEqual(drain(queue), ['a', 'b']);
});

// upstream: 75b
test('does not return a key in flight, and returns it again if it was added meanwhile', () => {
  const { queue } = newQueue();
  queue.add('a');
  assert.equal(queue.tryTake()?.key, 'a');
  queue.add('a');
  queue.add('a');
  assert.equal(queue.tryTake(), undefined);
  assert.equal(queue.length, 0);
  queue.done('a');
  assert.deepEqual(drain(queue), ['a']);
});

// upstream: 75b
test('appends a key that was added while in flight behind keys that arrived before its end', () => {
  const { queue } = newQueue();
  queue.add('a');
  queue.tryTake();
  queue.add('a');
  queue.add('b');
  queue.done('a');
  assert.deepEqual(drain(queue), ['b', 'a']);
});

// upstream: 77
test('returns a delayed key when it is due, not before', async () => {
  const { clock, queue } = newQueue();
  queue.add('a', { afterMs: 50 });
  await clock.advance(49);
  assert.equal(queue.tryTake(), undefined);
  await clock.advance(1);
  assert.equal(queue.tryTake()?.key, 'a');
  assert.equal(clock.pending, 0);
});

// upstream: 77, 92j
test('keeps the earlier of two delays', async () => {
  for (const [first, second] of [
    [1000, 1],
    [1, 1000],
  ]) {
    const { clock, queue } = newQueue();
    queue.add('a', { afterMs: first });
    queue.add('a', { afterMs: second });
    assert.deepEqual(drain(queue), []);
    await clock.advance(1);
    assert.deepEqual(drain(queue), ['a']);
    await clock.advance(5000);
    assert.deepEqual(drain(queue), []);
    assert.equal(clock.pending, 0);
  }
});

// upstream: 77
test('replaces a delay by an immediate addition', async () => {
  const { clock, queue } = newQueue();
  queue.add('a', { afterMs: 100 });
  queue.add('a');
  assert.deepEqual(drain(queue), ['a']);
  await clock.advance(1000);
  assert.deepEqual(drain(queue), []);
});

// upstream: 77
test('does not delay a queued key by a later addition', async () => {
  const { clock, queue } = newQueue();
  queue.add('a');
  queue.add('a', { afterMs: 100 });
  assert.deepEqual(drain(queue), ['a']);
  await clock.advance(1000);
  assert.deepEqual(drain(queue), []);
});

test('returns a key again if its delay ends while it is in flight', async () => {
  const { clock, queue } = newQueue();
  queue.add('a');
  queue.tryTake();
  queue.add('a', { afterMs: 10 });
  await clock.advance(10);
  assert.equal(queue.tryTake(), undefined);
  queue.done('a');
  assert.deepEqual(drain(queue), ['a']);
});

test('returns a key whose delay ends after it was done', async () => {
  const { clock, queue } = newQueue();
  queue.add('a');
  queue.tryTake();
  queue.add('a', { afterMs: 10 });
  queue.done('a');
  assert.equal(queue.tryTake(), undefined);
  await clock.advance(10);
  assert.deepEqual(drain(queue), ['a']);
});

test('treats a negative delay as 0', async () => {
  const { clock, queue } = newQueue();
  await clock.advance(100);
  queue.add('a', { afterMs: -50 });
  await clock.advance(10);
  assert.equal(queue.tryTake()?.queuedMs, 10);
});

// upstream: 77a
test('returns keys with the same due time in order of addition', async () => {
  const { clock, queue } = newQueue();
  for (const key of ['c', 'a', 'd', 'b']) queue.add(key, { afterMs: 10 });
  await clock.advance(10);
  assert.deepEqual(drain(queue), ['c', 'a', 'd', 'b']);
});

test('needs one timer for a thousand delays', async () => {
  const { clock, queue } = newQueue();
  for (let i = 0; i < 1000; i++) queue.add(`key ${i}`, { afterMs: 1000 - i });
  assert.equal(clock.pending, 1);
  assert.equal(clock.untilNext, 1);
  await clock.advance(500);
  assert.equal(queue.length, 500);
  assert.equal(clock.pending, 1);
});

// upstream: 92i
test('keeps the higher priority and appends the key there', () => {
  const { queue } = newQueue();
  queue.add('listed', { priority: LOW_PRIORITY });
  queue.add('changed later', { priority: LOW_PRIORITY });
  queue.add('changed', { priority: 0 });
  queue.add('changed later', { priority: 0 });
  queue.add('changed', { priority: LOW_PRIORITY });
  assert.deepEqual(drain(queue), ['changed', 'changed later', 'listed']);
});

// upstream: 92i
test('keeps the raised priority of a delayed key', async () => {
  const { clock, queue } = newQueue();
  queue.add('a', { afterMs: 10, priority: LOW_PRIORITY });
  queue.add('a', { afterMs: 20, priority: 3 });
  await clock.advance(10);
  assert.equal(queue.tryTake()?.priority, 3);
});

test('returns keys that become due together by priority to a waiting taker', async () => {
  const { clock, queue } = newQueue();
  queue.add('low', { afterMs: 10, priority: LOW_PRIORITY });
  queue.add('high', { afterMs: 10 });
  const taking = queue.take();
  await clock.advance(10);
  assert.equal((await taking)?.key, 'high');
});

test('lets tenants take turns', () => {
  const { queue } = newQueue({ tenantOf: (key) => key.split('/')[0] ?? '' });
  for (const key of ['a/1', 'a/2', 'a/3', 'b/1', 'b/2']) queue.add(key);
  assert.deepEqual(drain(queue), ['a/1', 'b/1', 'a/2', 'b/2', 'a/3']);
});

test('gives the cause of a delay only if no other addition makes the key ready before', async () => {
  const { queue, clock } = newQueue();
  const taken = () => queue.tryTake()?.causes.map(({ text }) => text);
  queue.add('a', { afterMs: 100, dueCause: 'its schedule is due' });
  assert.deepEqual(queue.snapshot().delayed[0]?.causes, [
    { text: 'its schedule is due', times: 1 },
  ]);
  queue.add('a', { cause: 'Pod deleted' });
  assert.deepEqual(taken(), ['Pod deleted']);
  // In flight: an event before the end of the sync.
  queue.add('a', { cause: 'Pod created' });
  queue.add('a', { afterMs: 100, dueCause: 'its schedule is due' });
  queue.done('a');
  assert.deepEqual(taken(), ['Pod created']);
  queue.add('a', { afterMs: 100, dueCause: 'its schedule is due' });
  queue.add('a', { afterMs: 50, dueCause: 'it polls' });
  queue.done('a');
  await clock.advance(49);
  assert.equal(taken(), undefined);
  await clock.advance(1);
  assert.deepEqual(taken(), ['it polls']);
  queue.done('a');
  queue.add('a', { dueCause: 'at once' });
  assert.deepEqual(taken(), ['at once']);
});

test('counts the causes of all additions up to a bound and resets them on take', () => {
  const { queue } = newQueue();
  queue.add('a', { cause: 'Count changed' });
  queue.add('a', { cause: 'Pod deleted', afterMs: 100 });
  queue.add('a', { cause: 'Count changed' });
  queue.add('a');
  const first = queue.tryTake();
  assert.deepEqual(first?.causes, [
    { text: 'Count changed', times: 2 },
    { text: 'Pod deleted', times: 1 },
  ]);
  for (let i = 0; i < MAX_CAUSES + 5; i++) queue.add('a', { cause: `cause ${i}` });
  queue.done('a');
  const second = queue.tryTake();
  assert.equal(second?.causes.length, MAX_CAUSES);
  assert.equal(second?.omittedCauses, 5);
});

test('reports how long a key was delayed and ready', async () => {
  const { clock, queue } = newQueue();
  const waits = () => {
    const { delayedMs, queuedMs } = queue.tryTake() ?? assert.fail();
    return [delayedMs, queuedMs];
  };
  queue.add('a', { afterMs: 100 });
  await clock.advance(130);
  assert.deepEqual(waits(), [100, 30]);
  queue.add('b', { afterMs: 100 });
  await clock.advance(40);
  queue.add('b');
  await clock.advance(5);
  assert.deepEqual(waits(), [40, 5], 'the earlier due time applies');
});

// upstream: 78f
test('backs off a failing key until it is forgotten', async () => {
  const { clock, queue } = newQueue();
  assert.deepEqual(
    [1, 2, 3].map(() => queue.addRateLimited('a')),
    [5, 10, 20],
  );
  assert.equal(queue.retries('a'), 3);
  await clock.advance(5);
  assert.equal(queue.tryTake()?.key, 'a');
  queue.forget('a');
  assert.equal(queue.retries('a'), 0);
  assert.equal(queue.addRateLimited('a'), 5);
});

test('serves waiting takers in order', async () => {
  const { queue } = newQueue();
  const first = queue.take();
  const second = queue.take();
  queue.add('a');
  queue.add('b');
  assert.equal((await first)?.key, 'a');
  assert.equal((await second)?.key, 'b');
});

// upstream: 75b
test('returns a key that was added while in flight to a waiting taker after done', async () => {
  const { queue } = newQueue();
  queue.add('a');
  queue.tryTake();
  queue.add('a');
  const taken: (string | undefined)[] = [];
  void queue.take().then((next) => taken.push(next?.key));
  await settle();
  assert.deepEqual(taken, []);
  queue.done('a');
  await settle();
  assert.deepEqual(taken, ['a']);
});

test('returns nothing to a taker whose signal aborted', async () => {
  const { queue } = newQueue();
  const giveUp = new AbortController();
  const taking = queue.take(giveUp.signal);
  giveUp.abort();
  assert.equal(await taking, undefined);
  queue.add('a');
  assert.equal(await queue.take(giveUp.signal), undefined);
  assert.deepEqual(drain(queue), ['a']);
});

test('leaves no listeners on a long-lived signal', async () => {
  const { queue } = newQueue();
  const { signal } = new AbortController();
  for (let i = 0; i < 3; i++) {
    const taking = queue.take(signal);
    queue.add('a');
    await taking;
    queue.done('a');
  }
  assert.equal(getEventListeners(signal, 'abort').length, 0);
});

// upstream: 76
test('returns and accepts nothing after the shutdown', async () => {
  const { clock, queue } = newQueue();
  queue.add('in flight');
  queue.tryTake();
  queue.add('in flight');
  queue.add('ready');
  queue.add('delayed', { afterMs: 10 });
  queue.shutDown();
  queue.shutDown();
  assert.equal(clock.pending, 0);
  queue.add('late');
  queue.add('in flight');
  assert.equal(queue.addRateLimited('late'), undefined);
  assert.equal(queue.retries('late'), 0);
  queue.done('in flight');
  await clock.advance(1000);
  assert.equal(queue.tryTake(), undefined);
  assert.equal(await queue.take(), undefined);
  assert.equal(queue.length, 0);
});

// upstream: 76a
test('ends waiting takers at the shutdown', async () => {
  const { queue } = newQueue();
  const taking = [queue.take(), queue.take()];
  queue.shutDown();
  assert.deepEqual(await Promise.all(taking), [undefined, undefined]);
});

// upstream: 76
test('is idle when no key is in flight', async () => {
  const { queue } = newQueue();
  queue.add('a');
  queue.add('b');
  await queue.idle();
  queue.tryTake();
  queue.tryTake();
  let isIdle = false;
  const idle = queue.idle().then(() => (isIdle = true));
  queue.done('a');
  queue.add('c');
  await settle();
  assert.equal(isIdle, false);
  queue.done('b');
  await idle;
});

test('throws if done is called for a key that is not in flight', () => {
  const { queue } = newQueue();
  assert.throws(() => queue.done('a'), /Key a is done but was not in flight/);
  queue.add('a');
  assert.throws(() => queue.done('a'), Error);
});

test('rejects a delay or priority that is not a number', () => {
  const { queue } = newQueue();
  assert.throws(() => queue.add('a', { afterMs: Number.NaN }), /^RangeError: .*afterMs must be/);
  assert.throws(() => queue.add('a', { priority: Infinity }), /^RangeError: .*priority must be/);
  assert.equal(queue.length, 0);
});

test('gives a delayed key to a waiting worker when it is added without a delay', async () => {
  const { queue } = newQueue();
  const taken = queue.take();
  queue.add('a', { afterMs: 1000 });
  queue.add('a');
  assert.equal(queue.length, 0);
  queue.shutDown();
  assert.equal((await taken)?.key, 'a');
});

test('returns a snapshot of ready, delayed and processed keys', async () => {
  const { clock, queue } = newQueue({ tenantOf: () => 'team' });
  await clock.advance(5);
  queue.add('in flight');
  queue.add('waiting', { priority: 2, cause: 'Count changed' });
  queue.tryTake();
  queue.tryTake();
  queue.done('waiting');
  queue.add('waiting', { priority: 2, cause: 'Count changed' });
  queue.add('planned', { afterMs: 100 });
  queue.add('in flight');
  await clock.advance(40);
  assert.deepEqual(queue.snapshot(), {
    ready: [
      {
        key: 'waiting',
        tenant: 'team',
        priority: 2,
        causes: [{ text: 'Count changed', times: 1 }],
        queuedMs: 40,
      },
    ],
    delayed: [{ key: 'planned', tenant: 'team', priority: 0, causes: [], dueInMs: 60 }],
    processing: [{ key: 'in flight', forMs: 40, again: true }],
    readyCount: 1,
    delayedCount: 1,
    oldestReadyMs: 40,
  });
});

test('a snapshot can be limited to some keys or to one', () => {
  const queue = new WorkQueue<string>({ name: 'count', clock: new FakeClock() });
  for (const afterMs of [300, 100, 200]) queue.add(`due in ${afterMs}`, { afterMs });
  queue.add('running');
  queue.tryTake();
  queue.add('a');
  queue.add('b');
  const keysIn = ({ ready, delayed, processing }: ReturnType<typeof queue.snapshot>) =>
    [ready, delayed, processing].map((entries) => entries.map(({ key }) => key));
  const limited = queue.snapshot({ limit: 1 });
  assert.deepEqual(keysIn(limited), [['a'], ['due in 100'], ['running']]);
  assert.deepEqual([limited.readyCount, limited.delayedCount], [2, 3]);
  assert.deepEqual(keysIn(queue.snapshot({ limit: 0 })), [[], [], ['running']]);
  assert.deepEqual(keysIn(queue.snapshot({ key: 'b' })), [['b'], [], []]);
  assert.deepEqual(keysIn(queue.snapshot({ key: 'running' })), [[], [], ['running']]);
  assert.deepEqual(keysIn(queue.snapshot({ key: 'unknown' })), [[], [], []]);
});

// upstream: 75
test('never gives a key to two of ten takers at once', async () => {
  const { clock, queue } = newQueue();
  const held = new Set<string>();
  let runs = 0;
  const worker = async () => {
    for (let taken = await queue.take(); taken; taken = await queue.take()) {
      assert.ok(!held.has(taken.key));
      held.add(taken.key);
      await clock.sleep(3);
      held.delete(taken.key);
      runs++;
      queue.done(taken.key);
    }
  };
  const workers = Array.from({ length: 10 }, worker);
  for (let producer = 0; producer < 50; producer++) {
    for (let i = 0; i < 5; i++) queue.add(`key ${(producer + i) % 20}`, { afterMs: i });
    await clock.advance(1);
  }
  await clock.advance(100);
  await queue.idle();
  queue.shutDown();
  await Promise.all(workers);
  assert.ok(runs >= 20);
});
