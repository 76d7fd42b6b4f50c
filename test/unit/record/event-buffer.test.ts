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
  /** Takes events until the buffer is closed, and adds their messages to `order`. */
  const collect = async () => {
    for (let next = await buffer.take(); next; next = await buffer.take()) {
      taken.push(next);
      order.push(next.event.message);
    }
  };
  /** Returns the taken event at index `nth`. */
  const at = (nth: number): PendingEvent => {
    const pending = taken.at(nth);
    assert.ok(pending);
    return pending;
  };
  return { clock, buffer, put, collect, order, at };
}

test('returns events of one object one at a time, in order; objects take turns', async () => {
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

test('replaces the state of a buffered event, which keeps its place', async () => {
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

test('returns an event that changes while it is written again, once', async () => {
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

test('rejects new events above the capacity, and accepts changes of buffered events', async () => {
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

test('delays only events of the same object while an event waits for its retry', async () => {
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

test('retries an event in its latest state, and counts it once in size', async () => {
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

test('retries an event that changed during a failed write once, in its new state', async () => {
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

test('endRetryDelays makes retried events available at once', async () => {
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

test('attempted settles after the attempt, whether it succeeded or not', async () => {
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
    // An event behind a delayed retry settles at once, because its attempt is far in the future.
    assert.equal(second.attempted.settled, end === 'retry');
    assert.equal(put('a', 'a3')?.attempted.settled, end === 'retry');
  }
});

// upstream: 83a
test('close drops all events, returns their number, and ends all waits', async () => {
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

test('onEmpty calls its listener when the last event is done, until it is unsubscribed', async () => {
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
