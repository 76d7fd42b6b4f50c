import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FailureBackoff } from '../../../src/cache/reflector-retry.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import {
  apiError,
  expired,
  notFound,
  tooManyRequests,
  unreachable,
} from '../../support/fake-source.ts';

function delays(pace: FailureBackoff, count: number, error: unknown = unreachable()): number[] {
  return Array.from({ length: count }, () => pace.next(error));
}

// upstream: 34a
test('doubles the delay from 0.8 s to 30 s', () => {
  const pace = new FailureBackoff(new FakeClock(), () => 0);
  assert.deepEqual(delays(pace, 8), [800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]);
});

// upstream: 34b
test('adds up to 100 % jitter to each delay, without carrying it over', () => {
  const pace = new FailureBackoff(new FakeClock(), () => 0.5);
  assert.deepEqual(delays(pace, 3), [1200, 2400, 4800]);
});

// upstream: 11
test('uses a custom policy', () => {
  const policy = { initialMs: 10, maxMs: 100, factor: 2 };
  const pace = new FailureBackoff(new FakeClock(), () => 0, undefined, policy);
  assert.deepEqual(delays(pace, 5), [10, 20, 40, 80, 100]);
});

// upstream: 34c
test('resets the backoff after two minutes without a failure', async () => {
  const clock = new FakeClock();
  const pace = new FailureBackoff(clock, () => 0);
  delays(pace, 4);
  pace.succeeded();
  await clock.advance(60_000);
  pace.succeeded();
  await clock.advance(60_000);
  assert.equal(pace.next(unreachable()), 800);
});

// upstream: 34c
test('does not reset the backoff after two minutes of failures', async () => {
  const clock = new FakeClock();
  const pace = new FailureBackoff(clock, () => 0);
  delays(pace, 4);
  await clock.advance(600_000);
  assert.equal(pace.next(unreachable()), 12_800);
});

// upstream: 34c
test('does not reset the backoff after single successes', async () => {
  const clock = new FakeClock();
  const pace = new FailureBackoff(clock, () => 0);
  const seen: number[] = [];
  for (let round = 0; round < 5; round++) {
    pace.succeeded();
    await clock.advance(100_000);
    seen.push(pace.next(unreachable()));
  }
  assert.deepEqual(seen, [800, 1600, 3200, 6400, 12_800]);
});

// upstream: 34i
test('relists at once after 410, however long the outage before was', () => {
  const pace = new FailureBackoff(new FakeClock(), () => 0);
  delays(pace, 8);
  pace.succeeded();
  assert.equal(pace.next(expired()), 0);
});

test('retries soon after 401 or 403, however long the outage before was, and then backs off', () => {
  const pace = new FailureBackoff(new FakeClock(), () => 0);
  delays(pace, 8);
  assert.deepEqual(delays(pace, 3, apiError('forbidden', 'no', 403)), [800, 1600, 3200]);
  assert.deepEqual(delays(pace, 1, apiError('unauthorized', 'no', 401)), [6400]);
});

// upstream: 34i
test('backs off if 410 repeats', async () => {
  const clock = new FakeClock();
  const pace = new FailureBackoff(clock, () => 0);
  const expected = [0, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000];
  assert.deepEqual(delays(pace, 9, expired()), expected);
  assert.equal(pace.next(unreachable()), 800, 'which is no reason to wait for an absent one');
  pace.succeeded();
  await clock.advance(120_000);
  assert.equal(pace.next(expired()), 0);
});

test('retries at least every five seconds if the resource is not served', () => {
  const pace = new FailureBackoff(new FakeClock(), () => 0.99);
  assert.ok(delays(pace, 20, notFound()).every((ms) => ms <= 5000));
});

test('waits for a longer Retry-After, up to two minutes', () => {
  const pace = new FailureBackoff(new FakeClock(), () => 0);
  assert.equal(pace.next(tooManyRequests(10_000)), 10_000);
  assert.equal(pace.next(tooManyRequests(1)), 1600);
  assert.equal(pace.next(tooManyRequests(86_400_000)), 120_000);
});
