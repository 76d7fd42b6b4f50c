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
test('the delay of a key doubles with each failure, whatever others do, until it is forgotten', () => {
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
test('the delay stops growing at its cap and never overflows', () => {
  const limiter = exponentialLimiter<string>({ initialMs: 1, maxMs: 1_000_000 });
  assert.equal(waits(limiter, 'one', 6).at(-1), 32);
  assert.equal(waits(limiter, 'one', 2000).at(-1), 1_000_000);
  const slow = exponentialLimiter<string>({ initialMs: 60_000, maxMs: 3_600_000_000 });
  assert.equal(waits(slow, 'two', 3).at(-1), 240_000);
  assert.equal(waits(slow, 'two', 1000).at(-1), 3_600_000_000);
});

// upstream: 78e
test('by default a key waits 5 ms first and 5 min at most', () => {
  const limiter = exponentialLimiter<string>();
  assert.deepEqual(waits(limiter, 'one', 4), [5, 10, 20, 40]);
  assert.equal(waits(limiter, 'one', 100).at(-1), 300_000);
});

test('jitter spreads each delay up to its share, and does not climb with it', () => {
  const shares = [0, 0.5, 0.999];
  const policy = { initialMs: 100, maxMs: 400, jitter: 0.5 };
  const limiter = exponentialLimiter<string>(policy, () => shares.shift() ?? 0);
  assert.deepEqual(waits(limiter, 'one', 4), [100, 250, 599.8, 400]);
});

// upstream: 78b
test('a few fast tries come before slow ones', () => {
  const limiter = fastSlowLimiter<string>({ fastMs: 5, slowMs: 10_000, fastAttempts: 3 });
  assert.deepEqual(waits(limiter, 'one', 5), [5, 5, 5, 10_000, 10_000]);
  assert.equal(limiter.retries('one'), 5);
  assert.deepEqual(waits(limiter, 'two', 1), [5]);
  limiter.forget('one');
  assert.deepEqual(waits(limiter, 'one', 1), [5]);
});

// upstream: 78e
test('the bucket gives its burst at once and then one token per interval', async () => {
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
test('the longest of several waits counts, and all of them advance', () => {
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
test('a backoff for each key beside a bucket for all makes the limiter that is the default in Go', async () => {
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
test('a wait can be capped', () => {
  const inner = exponentialLimiter<string>({ initialMs: 5, maxMs: 1_000_000 });
  const limiter = withMaxWait(inner, 500);
  assert.deepEqual(waits(limiter, 'one', 9), [5, 10, 20, 40, 80, 160, 320, 500, 500]);
  assert.equal(limiter.retries('one'), 9);
  limiter.forget('one');
  assert.equal(inner.retries('one'), 0);
});

test('a policy that makes no sense is refused, and the field is named', () => {
  assert.throws(() => exponentialLimiter({ initialMs: 0, maxMs: 5 }), /initialMs/);
  assert.throws(() => withMaxWait(exponentialLimiter(), Number.NaN), /maxMs.*NaN/);
  assert.throws(
    () => fastSlowLimiter({ fastMs: 1, slowMs: 2, fastAttempts: Number.NaN }),
    /fastAttempts.*NaN/,
  );
  assert.throws(() => bucketLimiter({ perSecond: 0, burst: 1 }, new FakeClock()), /perSecond/);
});
