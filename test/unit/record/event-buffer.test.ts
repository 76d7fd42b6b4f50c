import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EventBuffer } from '../../../src/record/event-buffer.ts';
import type { PendingEvent } from '../../../src/record/event-buffer.ts';
import type { RecordedEvent } from '../../../src/record/recorded-event.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';

function event(message: string): RecordedEvent {
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: message, namespace: 'default' },
    involvedObject: { apiVersion: 'v1', kind: 'Pod', name: 'web' },
    type: 'Normal',
    reason: 'Test',
    message,
    count: 1,
    firstTimestamp: '',
    lastTimestamp: '',
    source: { component: 'test' },
    reportingComponent: 'test',
    reportingInstance: '',
  };
}

function newBuffer(capacity = 100) {
  const clock = new FakeClock();
  const buffer = new EventBuffer(clock, capacity);
  const put = (object: string, message: string, key = message) =>
    buffer.put(key, object, event(message));
  const taken: PendingEvent[] = [];
  const order: string[] = [];
  /** From now on takes whatever can be taken. */
  const collect = async () => {
    for (let next = await buffer.take(); next; next = await buffer.take()) {
      taken.push(next);
      order.push(next.event.message);
    }
  };
  /** The event that was taken `nth`. */
  const at = (nth: number): PendingEvent => {
    const pending = taken.at(nth);
    assert.ok(pending);
    return pending;
  };
  return { clock, buffer, put, collect, order, at };
}

test('events about one object leave one at a time, in order; objects take turns', async () => {
  const { buffer, put, collect, order, at } = newBuffer();
  for (const message of ['a1', 'a2', 'a3']) put('a', message);
  put('b', 'b1');
  put('b', 'b2');
  const collecting = collect();
  await settle();
  assert.deepEqual(order, ['a1', 'b1']);
  buffer.done(at(1));
  buffer.done(at(0));
  await settle();
  assert.deepEqual(order, ['a1', 'b1', 'b2', 'a2']);
  buffer.close();
  await collecting;
});

test('an event that waits takes its newer state in, and keeps its place', async () => {
  const { buffer, put, collect, order } = newBuffer();
  put('a', 'old', 'key');
  put('b', 'b1');
  put('a', 'new', 'key');
  assert.equal(buffer.size, 2);
  const collecting = collect();
  await settle();
  assert.deepEqual(order, ['new', 'b1']);
  buffer.close();
  await collecting;
});

test('an event that changes while it is written is written again, once', async () => {
  const { buffer, put, collect, order, at } = newBuffer();
  const collecting = collect();
  put('a', 'first', 'key');
  await settle();
  put('a', 'second', 'key');
  put('a', 'third', 'key');
  assert.equal(buffer.size, 2);
  buffer.done(at(0));
  await settle();
  assert.deepEqual(order, ['first', 'third']);
  buffer.done(at(1));
  assert.equal(buffer.size, 0);
  buffer.close();
  await collecting;
});

test('what does not fit is refused; what is there already always fits', async () => {
  const { buffer, put, collect, at } = newBuffer(2);
  assert.ok(put('a', 'a1'));
  assert.ok(put('b', 'b1'));
  assert.equal(put('c', 'c1'), undefined);
  assert.ok(put('a', 'a1 again', 'a1'));
  void collect();
  await settle();
  assert.equal(put('c', 'c1'), undefined);
  buffer.done(at(0));
  assert.ok(put('c', 'c1'));
});

test('an event that must be tried again holds up its own object and no other', async () => {
  const { clock, buffer, put, collect, order, at } = newBuffer();
  put('a', 'a1');
  put('a', 'a2');
  void collect();
  await settle();
  buffer.retry(at(0), 10_000);
  put('b', 'b1');
  await clock.advance(9999);
  assert.deepEqual(order, ['a1', 'b1']);
  await clock.advance(1);
  assert.deepEqual(order, ['a1', 'b1', 'a1']);
  assert.equal(at(0).attempts, 2);
  assert.equal(buffer.size, 3);
});

test('an event that is tried again is so in its newest state, and counts once', async () => {
  const { clock, buffer, put, collect, at } = newBuffer();
  put('a', 'old', 'key');
  void collect();
  await settle();
  put('a', 'other');
  put('a', 'new', 'key');
  buffer.retry(at(0), 10);
  assert.equal(buffer.size, 2);
  put('a', 'newest', 'key');
  assert.equal(buffer.size, 2);
  await clock.advance(10);
  assert.equal(at(0).event.message, 'newest');
});

test('an event that changed while its writing failed is written in its new state, and once', async () => {
  const { clock, buffer, put, collect, order, at } = newBuffer();
  put('a', 'old', 'key');
  void collect();
  await settle();
  put('a', 'new', 'key');
  buffer.retry(at(0), 10);
  await clock.advance(10);
  assert.deepEqual(order, ['old', 'new']);
  buffer.done(at(1));
  await settle();
  assert.deepEqual(order, ['old', 'new']);
  assert.equal(buffer.size, 0);
  put('a', 'next');
  await settle();
  assert.deepEqual(order, ['old', 'new', 'next']);
});

test('a hurry ends the waits', async () => {
  const { clock, buffer, put, collect, at } = newBuffer();
  put('a', 'a1');
  void collect();
  await settle();
  buffer.retry(at(0), 10_000);
  buffer.endRetryDelays();
  await settle();
  assert.equal(at(0).attempts, 2);
  assert.equal(clock.pending, 0);
});

test('who waits for an attempt learns of its end, good or bad', async () => {
  for (const end of ['done', 'retry'] as const) {
    const { buffer, put, collect, at } = newBuffer();
    const first = put('a', 'a1');
    const second = put('a', 'a2');
    assert.ok(first && second);
    void collect();
    await settle();
    assert.equal(first.attempted.settled, false);
    if (end === 'done') buffer.done(at(0));
    else buffer.retry(at(0), 10_000);
    assert.equal(first.attempted.settled, true);
    // Behind one that waits, an attempt is far off: waiting for it would be of no use.
    assert.equal(second.attempted.settled, end === 'retry');
    assert.equal(put('a', 'a3')?.attempted.settled, end === 'retry');
  }
});

// upstream: 83a
test('closing forgets everything, says how much that was, and ends all waits', async () => {
  const { clock, buffer, put, collect, at } = newBuffer();
  put('a', 'in flight');
  void collect();
  await settle();
  put('a', 'behind');
  put('b', 'retried');
  await settle();
  buffer.retry(at(0), 10_000);
  const waiting = put('c', 'c1');
  assert.equal(buffer.close(), 4);
  assert.equal(waiting?.attempted.settled, true);
  assert.equal(clock.pending, 0);
  assert.equal(buffer.size, 0);
  assert.equal(await buffer.take(), undefined);
  assert.equal(put('d', 'late'), undefined);
  buffer.done(at(0));
  buffer.retry(at(0), 10);
  assert.equal(buffer.size, 0);
});

test('one learns when the last event is done, until one no longer wants to', async () => {
  const { buffer, put, collect, at } = newBuffer();
  let calls = 0;
  const unsubscribe = buffer.onEmpty(() => calls++);
  put('a', 'a1');
  put('b', 'b1');
  void collect();
  await settle();
  buffer.done(at(0));
  assert.equal(calls, 0);
  buffer.done(at(1));
  assert.equal(calls, 1);
  unsubscribe();
  put('a', 'a2');
  await settle();
  buffer.done(at(2));
  assert.equal(buffer.size, 0);
  assert.equal(calls, 1);
});
