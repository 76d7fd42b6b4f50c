import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { DeltaQueue } from '../../../src/cache/delta-queue.ts';
import type { DeltaQueueOptions, TimeSlice } from '../../../src/cache/delta-queue.ts';
import { Deferred } from '../../../src/util/deferred.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';

function world(options: DeltaQueueOptions = {}) {
  const clock = new FakeClock();
  const queue = new DeltaQueue<number>(clock, options);
  const taken: number[] = [];
  const stop = new AbortController();
  const consume = (process: (entry: number, turn: TimeSlice) => Promise<void> | undefined = note) =>
    queue.consume(process, stop.signal);
  const note = (entry: number) => {
    taken.push(entry);
    return undefined;
  };
  return { clock, queue, taken, stop, consume, note };
}

// upstream: 35
test('entries leave in the order they came, none merged', async () => {
  const { queue, taken, stop, consume } = world();
  const consuming = consume();
  for (const entry of [3, 1, 1, 2, 3]) void queue.push(entry);
  await settle();
  void queue.push(1);
  await settle();
  assert.deepEqual(taken, [3, 1, 1, 2, 3, 1]);
  stop.abort();
  await consuming;
});

// upstream: 43
test('the order holds for any sequence of pushes and pauses', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(fc.nat(), { maxLength: 40 })), async (bursts) => {
      const { queue, taken, stop, consume } = world({ yieldTurn: () => Promise.resolve() });
      const consuming = consume();
      for (const burst of bursts) {
        for (const entry of burst) void queue.push(entry);
        await Promise.resolve();
      }
      await settle(2);
      assert.deepEqual(taken, bursts.flat());
      assert.equal(queue.length, 0);
      stop.abort();
      await consuming;
    }),
    { numRuns: 30 },
  );
});

test('the order holds across the compaction of a long backlog', async () => {
  const { queue, taken, stop, consume, note } = world({ yieldTurn: () => Promise.resolve() });
  for (let entry = 0; entry < 5000; entry++) void queue.push(entry);
  const consuming = consume((entry) => {
    if (entry === 2500) void queue.push(5000);
    return note(entry);
  });
  await settle();
  assert.deepEqual(
    taken,
    Array.from({ length: 5001 }, (_, at) => at),
  );
  stop.abort();
  await consuming;
});

test('one entry at a time: what works long is waited for', async () => {
  const { queue, taken, stop, consume, note } = world();
  const work = new Deferred();
  const consuming = consume((entry) => {
    note(entry);
    return entry === 1 ? work.promise : undefined;
  });
  void queue.push(1);
  void queue.push(2);
  await settle();
  assert.deepEqual(taken, [1]);
  work.resolve();
  await settle();
  assert.deepEqual(taken, [1, 2]);
  stop.abort();
  await consuming;
});

test('the producer is asked to wait only above the mark, until half of it is left', async () => {
  const { queue, stop, consume, taken } = world({ highWater: 10 });
  for (let entry = 0; entry < 10; entry++) assert.equal(queue.push(entry), undefined);
  let waits = true;
  const room = queue.push(10);
  assert.ok(room instanceof Promise);
  void room.then(() => (waits = false));
  await settle();
  assert.equal(waits, true);
  const gates = Array.from({ length: 11 }, () => new Deferred());
  const consuming = consume((entry) => {
    taken.push(entry);
    return gates[entry]!.promise;
  });
  for (let entry = 0; entry < 4; entry++) gates[entry]!.resolve();
  await settle();
  assert.deepEqual([queue.length, waits], [6, true]);
  gates[4]!.resolve();
  await settle();
  assert.deepEqual([taken.length, queue.length, waits], [6, 5, false]);
  stop.abort();
  for (const gate of gates) gate.resolve();
  await consuming;
});

test('long runs of entries give way to the event loop', async () => {
  let turns = 0;
  const { queue, taken, stop, consume } = world({
    yieldTurn: () => {
      turns++;
      return Promise.resolve();
    },
  });
  for (let entry = 0; entry < 5000; entry++) void queue.push(entry);
  const consuming = consume();
  await settle();
  assert.equal(taken.length, 5000);
  assert.equal(turns, 4, 'every 1008 pieces, as the clock stands still');
  stop.abort();
  await consuming;
});

// upstream: 45
test('a slice ends when its time is used up', async () => {
  let nowMs = 0;
  const slices: number[] = [];
  const queue = new DeltaQueue<number>(Object.assign(new FakeClock(), { monotonic: () => nowMs }), {
    sliceMs: 10,
    onBatch: (ms) => slices.push(ms),
  });
  for (let entry = 0; entry < 40; entry++) void queue.push(entry);
  const stop = new AbortController();
  const consuming = queue.consume(() => {
    nowMs++;
    return undefined;
  }, stop.signal);
  await settle();
  assert.deepEqual(slices, [16, 16, 8], 'the clock is looked at every 16 pieces');
  stop.abort();
  await consuming;
});

// upstream: 45
test('an entry made of many pieces gives way between them', async () => {
  let turns = 0;
  const { queue, stop, consume } = world({
    yieldTurn: () => {
      turns++;
      return Promise.resolve();
    },
  });
  const consuming = consume(async (_, turn) => {
    for (let piece = 0; piece < 22_000; piece++) await turn.spend();
  });
  void queue.push(1);
  await settle();
  assert.equal(turns, 21);
  stop.abort();
  await consuming;
});

test('entries that come one by one, without a pause, give way too', async () => {
  const { queue, stop, consume } = world();
  let processed = 0;
  const consuming = consume(() => {
    processed++;
    void Promise.resolve().then(() => queue.push(processed));
    return undefined;
  });
  void queue.push(0);
  await new Promise((resolve) => void setImmediate(resolve));
  assert.ok(processed > 0 && processed <= 2016, `${processed} so far`);
  stop.abort();
  await consuming;
});

test('by default it gives way by a turn of the event loop', async () => {
  const { queue, stop, consume, taken } = world();
  for (let entry = 0; entry < 3000; entry++) void queue.push(entry);
  const consuming = consume();
  await new Promise((resolve) => void setImmediate(resolve));
  assert.ok(taken.length > 0 && taken.length < 3000, `${taken.length} so far`);
  await settle();
  assert.equal(taken.length, 3000);
  stop.abort();
  await consuming;
});

// upstream: 44
test('an abort ends the consumer, releases the producer and drops the rest', async () => {
  const { queue, taken, stop, consume, note } = world({ highWater: 1 });
  void queue.push(1);
  const room = queue.push(2);
  assert.ok(room);
  const work = new Deferred();
  const consuming = consume((entry) => {
    note(entry);
    return work.promise;
  });
  stop.abort();
  work.resolve();
  await consuming;
  await room;
  assert.deepEqual(taken, [1]);
  assert.equal(queue.push(3), undefined);
  assert.equal(queue.length, 0);
});

// upstream: 44
test('a consumer that idles ends on abort', async () => {
  const { stop, consume } = world();
  const consuming = consume();
  await settle();
  stop.abort();
  await consuming;
});

test('an entry that cannot be processed is a fault', async () => {
  const { queue, consume } = world();
  void queue.push(1);
  await assert.rejects(
    consume(() => {
      throw new Error('broken');
    }),
    /broken/,
  );
});
