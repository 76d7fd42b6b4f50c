import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  clockSkewCheck,
  EventLoopMonitor,
  informerHealthChecks,
} from '../../../src/serving/health-checks.ts';
import type { Clock } from '../../../src/util/clock.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { ApiError } from '../../../src/api/api-error.ts';
import { ReflectorProgress } from '../../../src/cache/progress.ts';
import { unreachable } from '../../../src/client/transport/connection-error.ts';

test('the event-loop check passes while timers fire, and before the start', async () => {
  const clock = new FakeClock();
  const monitor = new EventLoopMonitor(clock);
  const { check, detail } = monitor.check;
  await clock.advance(60_000);
  assert.equal(check(), undefined);
  const stop = new AbortController();
  const running = monitor.run(stop.signal);
  await clock.advance(600_500);
  assert.equal(check(), undefined);
  assert.deepEqual(detail?.(), ['last tick 1s ago; never late']);
  stop.abort();
  await running;
  assert.equal(clock.pending, 0);
});

test('the event-loop check fails if no timer fired for 30 s', async () => {
  const clock = new FakeClock();
  let lateMs = 0;
  const slow: Clock = {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    after: (ms, callback) => clock.after(ms + lateMs, callback),
    sleep: (ms, signal) => clock.sleep(ms + lateMs, signal),
  };
  const monitor = new EventLoopMonitor(slow);
  const { check, detail } = monitor.check;
  const stop = new AbortController();
  const running = monitor.run(stop.signal);
  lateMs = 59_000;
  await clock.advance(1000);
  await clock.advance(30_000);
  assert.equal(check(), undefined);
  await clock.advance(1);
  assert.equal(check(), 'no timer fired for 30s');
  await clock.advance(29_999);
  assert.equal(check(), undefined, 'it beats again');
  lateMs = 0;
  assert.deepEqual(detail?.(), ['last tick 0s ago; longest delay 59000ms, 0s ago']);
  await clock.advance(61_000);
  assert.deepEqual(detail?.(), ['last tick 0s ago; longest delay 59000ms, 1m1s ago']);
  stop.abort();
  await running;
});

test('the clock check fails if the wall clock moves by more than 5 min in either direction', async () => {
  const clock = new FakeClock();
  const { check } = clockSkewCheck(clock);
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

function newFixture() {
  const clock = new FakeClock();
  const pods = { name: 'pods', hasSynced: false, progress: new ReflectorProgress(clock) };
  const [sync, progress] = informerHealthChecks(() => [pods], clock);
  assert.ok(sync && progress?.detail);
  const { detail } = progress;
  return { clock, pods, sync: sync.check, progress: progress.check, detail };
}

test('an informer is ready when it has synced, while the server is active', async () => {
  const { clock, pods, sync, progress } = newFixture();
  assert.equal(sync(), 'not synced: pods');
  assert.equal(progress(), undefined, 'an informer that has not synced is not stale');
  pods.hasSynced = true;
  pods.progress.listed();
  assert.equal(sync(), undefined);
  await clock.advance(180_000);
  assert.equal(progress(), undefined, 'twice ninety seconds: a silent watch, and a new one');
  await clock.advance(1);
  assert.equal(progress(), 'no activity from the server: pods');
  pods.progress.listed();
  assert.equal(progress(), undefined);
});

test('a resource that the server does not serve does not make the process unready', async () => {
  const { clock, pods, sync, progress, detail } = newFixture();
  pods.progress.missing = true;
  await clock.advance(600_000);
  assert.equal(sync(), undefined);
  pods.hasSynced = true;
  assert.equal(progress(), undefined);
  assert.deepEqual(detail(), [
    'pods: waiting for the server to serve the resource; synced; no activity yet',
  ]);
});

test('the detail shows the state of each informer, its duration, and why the last call failed', async () => {
  const { clock, pods, detail } = newFixture();
  pods.progress.enter('listing');
  await clock.advance(3000);
  assert.deepEqual(detail(), ['pods: listing for 3s; not synced; no activity yet']);
  pods.progress.listed();
  pods.hasSynced = true;
  pods.progress.enter('watching');
  await clock.advance(250_000);
  pods.progress.observe({ lastByteMs: 200_000, activity: { lastMs: 241_000 } });
  assert.deepEqual(detail(), ['pods: watching for 4m10s; synced; last activity 12s ago']);
  const because = (code: string) =>
    unreachable(Object.assign(new Error('10.0.0.1'), { code }), 'https://10.0.0.1');
  pods.progress.enter('waiting', 'Cannot reach https://10.0.0.1');
  for (const [error, reason] of [
    [because('ECONNREFUSED'), 'connection refused'],
    [because('SELF_SIGNED_CERT_IN_CHAIN'), 'x509: certificate signed by unknown authority'],
    [because('ENOTFOUND'), 'its host name cannot be resolved'],
    [because('UNHEARD_OF'), 'unreachable'],
    [new ApiError({ kind: 'unauthorized', code: 401, message: 'Unauthorized' }), 'Unauthorized'],
    [new ApiError({ kind: 'forbidden', code: 403, message: 'jane may not' }), 'forbidden'],
    [new TypeError('10.0.0.1'), 'TypeError'],
  ] as const) {
    pods.progress.failed(error);
    const [line] = detail();
    assert.equal(
      line,
      `pods: waiting for 0s; synced; last activity 12s ago; last error 0s ago: ${reason}`,
    );
  }
});
