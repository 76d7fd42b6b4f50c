import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FailureBackoff } from '../../../src/cache/reflector-retry.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { expired, notFound, tooManyRequests, unreachable } from '../../support/fake-source.ts';

function delays(pace: FailureBackoff, count: number, error: unknown = unreachable()): number[] {
  return Array.from({ length: count }, () => pace.next(error));
}

// upstream: 34a
test('delays double from 0.8 s to 30 s', () => {
  const pace = new FailureBackoff(new FakeClock(), () => 0);
  assert.deepEqual(delays(pace, 8), [800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]);
});

// upstream: 34b
test('jitter adds up to the whole delay again, and is not carried over', () => {
  const pace = new FailureBackoff(new FakeClock(), () => 0.5);
  assert.deepEqual(delays(pace, 3), [1200, 2400, 4800]);
});

// upstream: 11
test('a ladder of one’s own is climbed', () => {
  const pace = new FailureBackoff(new FakeClock(), () => 0, {
    initialMs: 10,
    maxMs: 100,
    factor: 2,
  });
  assert.deepEqual(delays(pace, 5), [10, 20, 40, 80, 100]);
});

// upstream: 34c
test('two minutes of health lead back to the first rung', async () => {
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
test('two minutes of failures do not', async () => {
  const clock = new FakeClock();
  const pace = new FailureBackoff(clock, () => 0);
  delays(pace, 4);
  await clock.advance(600_000);
  assert.equal(pace.next(unreachable()), 12_800);
});

// upstream: 34c
test('a success before each failure is not health', async () => {
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
test('a server that is back and has forgotten is asked anew soon, however long it was away', () => {
  const pace = new FailureBackoff(new FakeClock(), () => 0);
  delays(pace, 8);
  pace.succeeded();
  assert.equal(pace.next(expired()), 800);
});

// upstream: 34i
test('one that forgets again and again is asked ever less often', async () => {
  const clock = new FakeClock();
  const pace = new FailureBackoff(clock, () => 0);
  assert.deepEqual(delays(pace, 8, expired()).slice(-3), [25_600, 30_000, 30_000]);
  assert.equal(pace.next(unreachable()), 800, 'which is no reason to wait for an absent one');
  pace.succeeded();
  await clock.advance(120_000);
  assert.equal(pace.next(expired()), 800);
});

test('a missing resource is looked for at least every five seconds', () => {
  const pace = new FailureBackoff(new FakeClock(), () => 0.99);
  assert.ok(delays(pace, 20, notFound()).every((ms) => ms <= 5000));
});

test('a server’s Retry-After is waited for if it is longer, up to two minutes', () => {
  const pace = new FailureBackoff(new FakeClock(), () => 0);
  assert.equal(pace.next(tooManyRequests(10_000)), 10_000);
  assert.equal(pace.next(tooManyRequests(1)), 1600);
  assert.equal(pace.next(tooManyRequests(86_400_000)), 120_000);
});
