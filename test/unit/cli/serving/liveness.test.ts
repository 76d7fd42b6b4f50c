import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clockSkew, Heartbeat } from '../../../../src/cli/serving/liveness.ts';
import type { Clock } from '../../../../src/util/clock.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';

test('the heart beats while timers fire, and is well before it begins', async () => {
  const clock = new FakeClock();
  const heartbeat = new Heartbeat(clock);
  const { check, detail } = heartbeat.check;
  await clock.advance(60_000);
  assert.equal(check(), undefined);
  const stop = new AbortController();
  const running = heartbeat.run(stop.signal);
  await clock.advance(600_500);
  assert.equal(check(), undefined);
  assert.deepEqual(detail?.(), ['last beat 1s ago; never late']);
  stop.abort();
  await running;
  assert.equal(clock.pending, 0);
});

test('the heart has stopped when no timer has fired for half a minute', async () => {
  const clock = new FakeClock();
  let lateMs = 0;
  const slow: Clock = {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    after: (ms, callback) => clock.after(ms + lateMs, callback),
    sleep: (ms, signal) => clock.sleep(ms + lateMs, signal),
  };
  const heartbeat = new Heartbeat(slow);
  const { check, detail } = heartbeat.check;
  const stop = new AbortController();
  const running = heartbeat.run(stop.signal);
  lateMs = 59_000;
  await clock.advance(1000);
  await clock.advance(30_000);
  assert.equal(check(), undefined);
  await clock.advance(1);
  assert.equal(check(), 'no timer fired for 30s');
  await clock.advance(29_999);
  assert.equal(check(), undefined, 'it beats again');
  lateMs = 0;
  assert.deepEqual(detail?.(), ['last beat 0s ago; at worst 59000ms late, 0s ago']);
  stop.abort();
  await running;
});

test('a wall clock that moves by more than five minutes is not well, in either direction', async () => {
  const clock = new FakeClock();
  const { check } = clockSkew(clock);
  await clock.advance(86_400_000);
  assert.equal(check(), undefined);
  clock.jump(300_000);
  assert.equal(check(), undefined);
  clock.jump(1);
  assert.equal(check(), 'the wall clock has moved by 5m0s against the monotonic clock');
  clock.jump(-600_001);
  assert.equal(check(), undefined);
  clock.jump(-1);
  assert.match(String(check()), /moved by 5m0s/);
  clock.jump(300_001);
  assert.equal(check(), undefined, 'it was set right');
});
