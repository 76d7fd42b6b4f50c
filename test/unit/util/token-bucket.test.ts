import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { TokenBucket } from '../../../src/util/token-bucket.ts';

function times<T>(count: number, call: () => T): T[] {
  return Array.from({ length: count }, call);
}

test('grants the burst at once, then one token per interval', async () => {
  const clock = new FakeClock();
  const bucket = new TokenBucket(clock, { burst: 2, intervalMs: 100 });
  assert.deepEqual(
    times(3, () => bucket.tryTake()),
    [true, true, false],
  );
  await clock.advance(99);
  assert.equal(bucket.tryTake(), false);
  await clock.advance(1);
  assert.deepEqual(
    times(2, () => bucket.tryTake()),
    [true, false],
  );
});

test('holds no more tokens than the burst', async () => {
  const clock = new FakeClock();
  const bucket = new TokenBucket(clock, { burst: 2, intervalMs: 100 });
  await clock.advance(60_000);
  assert.deepEqual(
    times(3, () => bucket.tryTake()),
    [true, true, false],
  );
});

test('reserves tokens in advance and returns the time until each is available', async () => {
  const clock = new FakeClock();
  const bucket = new TokenBucket(clock, { burst: 1, intervalMs: 100 });
  assert.deepEqual(
    times(3, () => bucket.reserve()),
    [0, 100, 200],
  );
  await clock.advance(150);
  assert.equal(bucket.tryTake(), false, 'the next two tokens are reserved');
  assert.equal(bucket.reserve(), 150);
});
