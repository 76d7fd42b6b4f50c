import assert from 'node:assert/strict';
import { test } from 'node:test';
import { followClockJumps } from '../../../src/util/clock-jumps.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';

test('a jump of the wall clock is noticed within a second, in both directions, once', async () => {
  const clock = new FakeClock();
  const jumps: number[] = [];
  const stop = new AbortController();
  const following = followClockJumps(clock, (byMs) => jumps.push(byMs), stop.signal);
  await clock.advance(10_000);
  clock.jump(5000);
  await clock.advance(1000);
  clock.jump(-7000);
  await clock.advance(10_000);
  assert.deepEqual(jumps, [5000, -7000]);
  stop.abort();
  await following;
  assert.equal(clock.pending, 0);
});

test('small steps are tolerated until they add up', async () => {
  const clock = new FakeClock();
  const jumps: number[] = [];
  const stop = new AbortController();
  const following = followClockJumps(clock, (byMs) => jumps.push(byMs), stop.signal);
  for (let step = 0; step < 3; step++) {
    clock.jump(100);
    await clock.advance(1000);
  }
  assert.deepEqual(jumps, [300]);
  stop.abort();
  await following;
});
