import assert from 'node:assert/strict';
import { describe, it, mock, test } from 'node:test';
import { systemClock, watchClockJumps } from '../../../src/util/clock.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';

const DAY_MS = 86_400_000;

describe('the system clock', () => {
  it('supports delays beyond the limit of setTimeout', async (context) => {
    context.mock.timers.enable({ apis: ['setTimeout'] });
    let elapsed = 0;
    context.mock.method(performance, 'now', () => elapsed);
    const fired = mock.fn();
    systemClock.after(30 * DAY_MS, fired);
    for (let day = 0; day < 29; day++) {
      elapsed += DAY_MS;
      context.mock.timers.tick(DAY_MS);
    }
    assert.equal(fired.mock.callCount(), 0);
    elapsed += DAY_MS;
    context.mock.timers.tick(DAY_MS);
    assert.equal(fired.mock.callCount(), 1);
  });

  it('ends a sleep when its signal aborts and removes its listener', async () => {
    const stop = new AbortController();
    const sleep = systemClock.sleep(DAY_MS, stop.signal);
    stop.abort();
    await sleep;
    await systemClock.sleep(DAY_MS, stop.signal);
  });
});

describe('the fake clock', () => {
  it('fires timers in the order of their due times, at these times', async () => {
    const clock = new FakeClock(1000);
    const fired: [string, number][] = [];
    for (const [name, ms] of [
      ['b', 20],
      ['a', 10],
      ['c', 20],
      ['late', 31],
    ] as const) {
      clock.after(ms, () => fired.push([name, clock.now()]));
    }
    await clock.advance(30);
    assert.deepEqual(fired, [
      ['a', 1010],
      ['b', 1020],
      ['c', 1020],
    ]);
    assert.equal(clock.monotonic(), 30);
    assert.equal(clock.untilNext, 1);
  });

  it('runs a chain of sleeps as in real time', async () => {
    const clock = new FakeClock(0);
    const woken: number[] = [];
    const chain = (async () => {
      for (let turn = 0; turn < 5; turn++) {
        await clock.sleep(10);
        woken.push(clock.monotonic());
      }
    })();
    await clock.advance(100);
    await chain;
    assert.deepEqual(woken, [10, 20, 30, 40, 50]);
  });

  it('drops cancelled timers and aborted sleeps', async () => {
    const clock = new FakeClock();
    clock.after(10, () => assert.fail('cancelled'))();
    const stop = new AbortController();
    const sleep = clock.sleep(10, stop.signal);
    stop.abort();
    await sleep;
    assert.equal(clock.pending, 0);
  });

  it('moves only the wall clock on a jump, without firing timers', async () => {
    const clock = new FakeClock(0);
    clock.after(10, () => assert.fail('too early'));
    clock.jump(DAY_MS);
    await settle();
    assert.deepEqual([clock.now(), clock.monotonic()], [DAY_MS, 0]);
  });
});

test('detects a jump of the wall clock once within a second, in both directions', async () => {
  const clock = new FakeClock();
  const jumps: number[] = [];
  const stop = new AbortController();
  const following = watchClockJumps(clock, (byMs) => jumps.push(byMs), stop.signal);
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

test('detects small steps of the wall clock when they add up to a jump', async () => {
  const clock = new FakeClock();
  const jumps: number[] = [];
  const stop = new AbortController();
  const following = watchClockJumps(clock, (byMs) => jumps.push(byMs), stop.signal);
  for (let step = 0; step < 3; step++) {
    clock.jump(100);
    await clock.advance(1000);
  }
  assert.deepEqual(jumps, [300]);
  stop.abort();
  await following;
});
