import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  bucketLimiter,
  exponentialLimiter,
  fastSlowLimiter,
  maxOfLimiter,
  withMaxWait,
} from '../../../src/workqueue/rate-limiter.ts';
import type { RateLimiter } from '../../../src/workqueue/rate-limiter.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';

function waits(limiter: RateLimiter<string>, key: string, times: number): number[] {
  return Array.from({ length: times }, () => limiter.when(key));
}

// upstream: 78
test('doubles the delay of each key with each failure until it is forgotten', () => {
  const limiter = exponentialLimiter<string>({ initialMs: 1, maxMs: 1000 });
  assert.deepEqual(waits(limiter, 'one', 5), [1, 2, 4, 8, 16]);
  assert.equal(limiter.retries('one'), 5);
  assert.deepEqual(waits(limiter, 'two', 2), [1, 2]);
  assert.equal(limiter.retries('two'), 2);
  limiter.forget('one');
  assert.equal(limiter.retries('one'), 0);
  assert.deepEqual(waits(limiter, 'one', 1), [1]);
  assert.equal(limiter.retries('two'), 2);
});

// upstream: 78a
test('limits the delay to the maximum without overflow', () => {
  const limiter = exponentialLimiter<string>({ initialMs: 1, maxMs: 1_000_000 });
  assert.equal(waits(limiter, 'one', 6).at(-1), 32);
  assert.equal(waits(limiter, 'one', 2000).at(-1), 1_000_000);
  const slow = exponentialLimiter<string>({ initialMs: 60_000, maxMs: 3_600_000_000 });
  assert.equal(waits(slow, 'two', 3).at(-1), 240_000);
  assert.equal(waits(slow, 'two', 1000).at(-1), 3_600_000_000);
});

// upstream: 78e
test('waits 5 ms first and at most 5 min by default', () => {
  const limiter = exponentialLimiter<string>();
  assert.deepEqual(waits(limiter, 'one', 4), [5, 10, 20, 40]);
  assert.equal(waits(limiter, 'one', 100).at(-1), 300_000);
});

test('adds jitter to each delay without accumulation', () => {
  const shares = [0, 0.5, 0.999];
  const policy = { initialMs: 100, maxMs: 400, jitter: 0.5 };
  const limiter = exponentialLimiter<string>(policy, () => shares.shift() ?? 0);
  assert.deepEqual(waits(limiter, 'one', 4), [100, 250, 599.8, 400]);
});

// upstream: 78b
test('returns fast delays before slow ones', () => {
  const limiter = fastSlowLimiter<string>({ fastMs: 5, slowMs: 10_000, fastAttempts: 3 });
  assert.deepEqual(waits(limiter, 'one', 5), [5, 5, 5, 10_000, 10_000]);
  assert.equal(limiter.retries('one'), 5);
  assert.deepEqual(waits(limiter, 'two', 1), [5]);
  limiter.forget('one');
  assert.deepEqual(waits(limiter, 'one', 1), [5]);
});

// upstream: 78e
test('grants the burst at once and then one token per interval', async () => {
  const clock = new FakeClock();
  const limiter = bucketLimiter<string>({ perSecond: 10, burst: 3 }, clock);
  assert.deepEqual(waits(limiter, 'any', 5), [0, 0, 0, 100, 200]);
  assert.equal(limiter.retries('any'), 0);
  limiter.forget('any');
  await clock.advance(300);
  assert.deepEqual(waits(limiter, 'other', 2), [0, 100]);
  await clock.advance(60_000);
  assert.deepEqual(waits(limiter, 'other', 4), [0, 0, 0, 100]);
});

// upstream: 78c
test('returns the longest delay and counts the failure in all limiters', () => {
  const limiter = maxOfLimiter<string>(
    fastSlowLimiter({ fastMs: 5, slowMs: 3000, fastAttempts: 3 }),
    exponentialLimiter({ initialMs: 1, maxMs: 1000 }),
  );
  assert.deepEqual(waits(limiter, 'one', 5), [5, 5, 5, 3000, 3000]);
  assert.equal(limiter.retries('one'), 5);
  limiter.forget('one');
  assert.deepEqual(waits(limiter, 'one', 1), [5]);
});

// upstream: 78e
test('combines a backoff per key and a bucket for all keys, like client-go’s default', async () => {
  const clock = new FakeClock();
  const limiter = maxOfLimiter<string>(
    exponentialLimiter({ initialMs: 5, maxMs: 1_000_000 }),
    bucketLimiter({ perSecond: 10, burst: 100 }, clock),
  );
  for (let i = 0; i < 100; i++) assert.equal(limiter.when(`key ${i}`), 5);
  assert.equal(limiter.when('key 100'), 100, 'the bucket is empty');
  assert.equal(limiter.when('key 0'), 200, 'and has a debt');
  assert.deepEqual([limiter.retries('key 0'), limiter.retries('key 1')], [2, 1]);
  await clock.advance(60_000);
  assert.equal(
    limiter.when('key 0'),
    20,
    'the bucket is full, the key has failed for the third time',
  );
  limiter.forget('key 0');
  assert.equal(limiter.when('key 0'), 5);
});

// upstream: 78d
test('limits a delay to a maximum', () => {
  const inner = exponentialLimiter<string>({ initialMs: 5, maxMs: 1_000_000 });
  const limiter = withMaxWait(inner, 500);
  assert.deepEqual(waits(limiter, 'one', 9), [5, 10, 20, 40, 80, 160, 320, 500, 500]);
  assert.equal(limiter.retries('one'), 9);
  limiter.forget('one');
  assert.equal(inner.retries('one'), 0);
});

test('rejects an invalid policy and names the field', () => {
  assert.throws(() => exponentialLimiter({ initialMs: 0, maxMs: 5 }), /initialMs/);
  assert.throws(() => withMaxWait(exponentialLimiter(), Number.NaN), /maxMs.*NaN/);
  assert.throws(
    () => fastSlowLimiter({ fastMs: 1, slowMs: 2, fastAttempts: Number.NaN }),
    /fastAttempts.*NaN/,
  );
  assert.throws(() => bucketLimiter({ perSecond: 0, burst: 1 }, new FakeClock()), /perSecond/);
});
