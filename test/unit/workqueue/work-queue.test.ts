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

/** Takes what is there and gives it back. */
function drain(queue: WorkQueue<string>): string[] {
  const keys: string[] = [];
  for (let taken = queue.tryTake(); taken; taken = queue.tryTake()) {
    keys.push(taken.key);
    queue.done(taken.key);
  }
  return keys;
}

// upstream: 75a
test('a key that is added several times before it is taken is taken once', () => {
  const { queue } = newQueue();
  for (const key of ['a', 'b', 'a', 'a']) queue.add(key);
  assert.equal(queue.length, 2);
  assert.deepEqual(drain(queue), ['a', 'b']);
});

// upstream: 75b
test('a key is not handed out again while it is in flight; added meanwhile, it runs once more', () => {
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
test('a key that was added while in flight waits behind those that came before its end', () => {
  const { queue } = newQueue();
  queue.add('a');
  queue.tryTake();
  queue.add('a');
  queue.add('b');
  queue.done('a');
  assert.deepEqual(drain(queue), ['b', 'a']);
});

// upstream: 77
test('a delayed key becomes ready when its time has come, and not before', async () => {
  const { clock, queue } = newQueue();
  queue.add('a', { afterMs: 50 });
  await clock.advance(49);
  assert.equal(queue.tryTake(), undefined);
  await clock.advance(1);
  assert.equal(queue.tryTake()?.key, 'a');
  assert.equal(clock.pending, 0);
});

// upstream: 77, 92j
test('of two delays the earlier wins, in either order of adding', async () => {
  for (const [first, second] of [
    [1000, 20],
    [20, 1000],
  ]) {
    const { clock, queue } = newQueue();
    queue.add('a', { afterMs: first });
    queue.add('a', { afterMs: second });
    await clock.advance(20);
    assert.deepEqual(drain(queue), ['a']);
    await clock.advance(5000);
    assert.deepEqual(drain(queue), []);
    assert.equal(clock.pending, 0);
  }
});

// upstream: 77
test('an immediate addition takes the delayed one with it', async () => {
  const { clock, queue } = newQueue();
  queue.add('a', { afterMs: 100 });
  queue.add('a');
  assert.deepEqual(drain(queue), ['a']);
  await clock.advance(1000);
  assert.deepEqual(drain(queue), []);
});

// upstream: 77
test('a key that waits already is not delayed by a later wish', async () => {
  const { clock, queue } = newQueue();
  queue.add('a');
  queue.add('a', { afterMs: 100 });
  assert.deepEqual(drain(queue), ['a']);
  await clock.advance(1000);
  assert.deepEqual(drain(queue), []);
});

test('a delay that ends while its key is in flight makes it run once more after that', async () => {
  const { clock, queue } = newQueue();
  queue.add('a');
  queue.tryTake();
  queue.add('a', { afterMs: 10 });
  await clock.advance(10);
  assert.equal(queue.tryTake(), undefined);
  queue.done('a');
  assert.deepEqual(drain(queue), ['a']);
});

test('a delay that outlasts the run of its key still ends', async () => {
  const { clock, queue } = newQueue();
  queue.add('a');
  queue.tryTake();
  queue.add('a', { afterMs: 10 });
  queue.done('a');
  assert.equal(queue.tryTake(), undefined);
  await clock.advance(10);
  assert.deepEqual(drain(queue), ['a']);
});

test('a time in the past is now', async () => {
  const { clock, queue } = newQueue();
  await clock.advance(100);
  queue.add('a', { afterMs: -50 });
  await clock.advance(10);
  assert.equal(queue.tryTake()?.queuedMs, 10);
});

// upstream: 77a
test('keys due together arrive in the order in which they were added', async () => {
  const { clock, queue } = newQueue();
  for (const key of ['c', 'a', 'd', 'b']) queue.add(key, { afterMs: 10 });
  await clock.advance(10);
  assert.deepEqual(drain(queue), ['c', 'a', 'd', 'b']);
});

test('a thousand delays need one timer', async () => {
  const { clock, queue } = newQueue();
  for (let i = 0; i < 1000; i++) queue.add(`key ${i}`, { afterMs: 1000 - i });
  assert.equal(clock.pending, 1);
  assert.equal(clock.untilNext, 1);
  await clock.advance(500);
  assert.equal(queue.length, 500);
  assert.equal(clock.pending, 1);
});

// upstream: 92i
test('of two priorities the higher wins, and a key that is raised goes to its end', () => {
  const { queue } = newQueue();
  queue.add('listed', { priority: LOW_PRIORITY });
  queue.add('changed later', { priority: LOW_PRIORITY });
  queue.add('changed', { priority: 0 });
  queue.add('changed later', { priority: 0 });
  queue.add('changed', { priority: LOW_PRIORITY });
  assert.deepEqual(drain(queue), ['changed', 'changed later', 'listed']);
});

// upstream: 92i
test('a delayed key keeps the priority it was raised to', async () => {
  const { clock, queue } = newQueue();
  queue.add('a', { afterMs: 10, priority: LOW_PRIORITY });
  queue.add('a', { afterMs: 20, priority: 3 });
  await clock.advance(10);
  assert.equal(queue.tryTake()?.priority, 3);
});

test('what becomes due together is handed to a waiting taker by priority', async () => {
  const { clock, queue } = newQueue();
  queue.add('low', { afterMs: 10, priority: LOW_PRIORITY });
  queue.add('high', { afterMs: 10 });
  const taking = queue.take();
  await clock.advance(10);
  assert.equal((await taking)?.key, 'high');
});

test('tenants take turns', () => {
  const { queue } = newQueue({ tenantOf: (key) => key.split('/')[0] ?? '' });
  for (const key of ['a/1', 'a/2', 'a/3', 'b/1', 'b/2']) queue.add(key);
  assert.deepEqual(drain(queue), ['a/1', 'b/1', 'a/2', 'b/2', 'a/3']);
});

test('the causes of all additions are counted once each, up to a bound, and reset by taking', () => {
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

test('a key knows how long it waited for its time, and how long it was ready', async () => {
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
  assert.deepEqual(waits(), [40, 5], 'an earlier wish wins');
});

// upstream: 78f
test('a failing key backs off until it is forgotten', async () => {
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

test('takers wait for keys and are served in the order in which they came', async () => {
  const { queue } = newQueue();
  const first = queue.take();
  const second = queue.take();
  queue.add('a');
  queue.add('b');
  assert.equal((await first)?.key, 'a');
  assert.equal((await second)?.key, 'b');
});

// upstream: 75b
test('a key that is given back, and shall run once more, goes to the taker that waits', async () => {
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

test('a taker that gives up takes nothing', async () => {
  const { queue } = newQueue();
  const giveUp = new AbortController();
  const taking = queue.take(giveUp.signal);
  giveUp.abort();
  assert.equal(await taking, undefined);
  queue.add('a');
  assert.equal(await queue.take(giveUp.signal), undefined);
  assert.deepEqual(drain(queue), ['a']);
});

test('a signal that outlives its takers gathers no listeners', async () => {
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
test('after shutdown nothing is handed out and nothing is taken in', async () => {
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
test('shutdown ends the wait of takers', async () => {
  const { queue } = newQueue();
  const taking = [queue.take(), queue.take()];
  queue.shutDown();
  assert.deepEqual(await Promise.all(taking), [undefined, undefined]);
});

// upstream: 76
test('idle waits for what is in flight and for nothing else', async () => {
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

test('giving back what one does not have is an error', () => {
  const { queue } = newQueue();
  assert.throws(() => queue.done('a'), /Key a is done but was not in flight/);
  queue.add('a');
  assert.throws(() => queue.done('a'), Error);
});

test('a time or priority that is no number is refused', () => {
  const { queue } = newQueue();
  assert.throws(() => queue.add('a', { afterMs: Number.NaN }), /afterMs must be a finite number/);
  assert.throws(() => queue.add('a', { priority: Infinity }), /priority must be a finite number/);
  assert.equal(queue.length, 0);
});

test('a snapshot tells what waits for what', async () => {
  const { clock, queue } = newQueue({ tenantOf: () => 'team' });
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
  });
});

// upstream: 75
test('ten takers and fifty producers: nobody ever holds a key that another one holds', async () => {
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
