import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { DeltaQueue } from '../../../src/cache/delta-queue.ts';
import type { DeltaQueueOptions, TimeSlice } from '../../../src/cache/delta-queue.ts';
import { Deferred } from '../../../src/util/deferred.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';

function newFixture(options: DeltaQueueOptions = {}) {
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
test('processes entries in order without merging', async () => {
  const { queue, taken, stop, consume } = newFixture();
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
test('keeps the order for any sequence of pushes and pauses', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(fc.nat(), { maxLength: 40 })), async (bursts) => {
      const { queue, taken, stop, consume } = newFixture({ yieldTurn: () => Promise.resolve() });
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

test('keeps the order when a long backlog is compacted', async () => {
  const { queue, taken, stop, consume, note } = newFixture({ yieldTurn: () => Promise.resolve() });
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

test('processes one entry at a time and awaits it', async () => {
  const { queue, taken, stop, consume, note } = newFixture();
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

test('blocks the producer above the high-water mark until half of it is left', async () => {
  const { queue, stop, consume, taken } = newFixture({ highWater: 10 });
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

test('yields to the event loop during a long backlog', async () => {
  let turns = 0;
  const { queue, taken, stop, consume } = newFixture({
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
test('ends a slice after its time', async () => {
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
test('yields between the units of one entry', async () => {
  let turns = 0;
  const { queue, stop, consume } = newFixture({
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

test('yields if entries arrive one by one without a pause', async () => {
  const { queue, stop, consume } = newFixture();
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

test('yields for one turn of the event loop by default', async () => {
  const { queue, stop, consume, taken } = newFixture();
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
test('ends the consumer, releases the producer and drops the rest on abort', async () => {
  const { queue, taken, stop, consume, note } = newFixture({ highWater: 1 });
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
test('ends an idle consumer on abort', async () => {
  const { stop, consume } = newFixture();
  const consuming = consume();
  await settle();
  stop.abort();
  await consuming;
});

test('rejects if an entry cannot be processed', async () => {
  const { queue, consume } = newFixture();
  void queue.push(1);
  await assert.rejects(
    consume(() => {
      throw new Error('broken');
    }),
    /broken/,
  );
});
