import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { DelayedKeys } from '../../../src/workqueue/delayed-keys.ts';
import { newQueueItem } from '../../../src/workqueue/queue-item.ts';
import type { QueueItem } from '../../../src/workqueue/queue-item.ts';

/** Records due keys as `<key>@<milliseconds>`. */
function newDelays() {
  const clock = new FakeClock();
  const arrivals: string[] = [];
  const delayed = new DelayedKeys<QueueItem<string>>(clock, (items) => {
    for (const { key } of items) arrivals.push(`${key}@${clock.monotonic()}`);
  });
  const items = new Map<string, QueueItem<string>>();
  const itemOf = (key: string) => {
    const item = items.get(key) ?? newQueueItem(key, '', 0, 0);
    items.set(key, item);
    return item;
  };
  const delays = {
    set: (key: string, dueMs: number) => delayed.set(itemOf(key), dueMs),
    delete: (key: string) => delayed.delete(itemOf(key)),
  };
  return { clock, delays, arrivals };
}

// upstream: 77a
test('reports each key at its own time', async () => {
  const { clock, delays, arrivals } = newDelays();
  delays.set('first', 1000);
  delays.set('second', 500);
  delays.set('third', 250);
  await clock.advance(2000);
  assert.deepEqual(arrivals, ['third@250', 'second@500', 'first@1000']);
  assert.equal(clock.pending, 0);
});

// upstream: 77a
test('does not report a key a millisecond early', async () => {
  const { clock, delays, arrivals } = newDelays();
  delays.set('a', 10);
  delays.set('b', 11);
  await clock.advance(20);
  assert.deepEqual(arrivals, ['a@10', 'b@11']);
});

// upstream: 77a
test('replaces the due time of a key, earlier or later', async () => {
  const { clock, delays, arrivals } = newDelays();
  delays.set('sooner', 100);
  delays.set('later', 5);
  delays.set('sooner', 10);
  delays.set('later', 50);
  await clock.advance(1000);
  assert.deepEqual(arrivals, ['sooner@10', 'later@50']);
});

test('does not report a removed key and leaves no timer', async () => {
  const { clock, delays, arrivals } = newDelays();
  delays.set('a', 10);
  delays.set('b', 20);
  delays.delete('a');
  assert.equal(clock.untilNext, 20);
  delays.delete('b');
  assert.equal(clock.pending, 0);
  delays.delete('b');
  await clock.advance(100);
  assert.deepEqual(arrivals, []);
});

test('reports a key with a past due time at once', async () => {
  const { clock, delays, arrivals } = newDelays();
  await clock.advance(100);
  delays.set('late', 50);
  await clock.advance(0);
  assert.deepEqual(arrivals, ['late@100']);
});
