import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ReflectorProgress } from '../../../src/cache/progress.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';

test('keeps the time of the last byte of an earlier connection', async () => {
  const clock = new FakeClock();
  const progress = new ReflectorProgress(clock);
  assert.equal(progress.lastByteMs, undefined);
  await clock.advance(100);
  assert.equal(progress.inactiveMs, 100, 'since the start, before anything has arrived');
  const stream = { lastByteMs: 40 };
  progress.observe(stream);
  stream.lastByteMs = 90;
  assert.equal(progress.lastByteMs, 90);
  progress.observe(undefined);
  assert.equal(progress.lastByteMs, 90);
  progress.observe({ lastByteMs: 60 });
  assert.equal(progress.lastByteMs, 90);
  assert.equal(progress.inactiveMs, 10);
});

test('counts a list as activity and the resource as served', async () => {
  const clock = new FakeClock();
  const progress = new ReflectorProgress(clock);
  progress.missing = true;
  await clock.advance(50);
  progress.listed();
  await clock.advance(5);
  assert.equal(progress.missing, false);
  assert.deepEqual([progress.lastListMs, progress.lastByteMs, progress.inactiveMs], [50, 50, 5]);
});

test('keeps the reason of a failure until an attempt succeeds', async () => {
  const clock = new FakeClock();
  const progress = new ReflectorProgress(clock);
  await clock.advance(10);
  assert.equal(progress.enter('waiting', 'refused'), true);
  await clock.advance(10);
  assert.equal(progress.enter('waiting', 'reset'), false);
  assert.deepEqual([progress.phase, progress.sinceMs, progress.reason], ['waiting', 10, 'reset']);
  assert.equal(progress.enter('listing'), true);
  assert.deepEqual([progress.sinceMs, progress.reason], [20, 'reset'], 'during an attempt');
  progress.listed();
  assert.equal(progress.reason, undefined);
  progress.enter('waiting', 'closed');
  progress.enter('watching');
  assert.equal(progress.reason, 'closed');
  progress.recovered();
  assert.equal(progress.reason, undefined);
});

test('counts answers to pings as activity, but not as a byte', async () => {
  const clock = new FakeClock();
  const progress = new ReflectorProgress(clock, 100);
  const activity = { lastMs: 0 };
  await clock.advance(40);
  progress.observe({ lastByteMs: 10, activity });
  activity.lastMs = 30;
  assert.deepEqual(
    [progress.lastByteMs, progress.lastActivityMs, progress.inactiveMs, progress.isStale],
    [10, 30, 10, false],
  );
  progress.observe(undefined);
  await clock.advance(90);
  assert.deepEqual(
    [progress.lastActivityMs, progress.inactiveMs, progress.isStale],
    [30, 100, false],
  );
  await clock.advance(1);
  assert.equal(progress.isStale, true, 'inactive for longer than the limit');
});

test('keeps an error and its time until a watch is established', async () => {
  const clock = new FakeClock();
  const progress = new ReflectorProgress(clock);
  const error = new Error('refused');
  progress.missing = true;
  await clock.advance(7);
  progress.failed(error);
  assert.deepEqual([progress.lastError, progress.lastErrorMs, progress.missing], [error, 7, false]);
  progress.recovered();
  assert.deepEqual([progress.lastError, progress.lastErrorMs], [undefined, undefined]);
});
