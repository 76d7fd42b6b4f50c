import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PingTimeoutError } from '../../../../src/client/transport/connection-error.ts';
import { HealthCheck } from '../../../../src/client/transport/health-check.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';

/** Time passes while this machine sleeps; its timers then come late. */
class SleepyClock extends FakeClock {
  sleptMs = 0;

  override monotonic(): number {
    return super.monotonic() + this.sleptMs;
  }
}

function world(answers: 'at once' | 'late' | 'never' = 'at once') {
  const clock = new SleepyClock();
  const pings: number[] = [];
  const deaths: [number, string][] = [];
  const heartbeat: HealthCheck = new HealthCheck(
    clock,
    { pingAfterMs: 20_000, pingTimeoutMs: 10_000 },
    {
      ping: () => {
        pings.push(clock.monotonic());
        if (answers === 'at once') heartbeat.beat();
        if (answers === 'late') clock.after(9999, () => heartbeat.beat());
      },
      onDead: (error) => {
        assert.ok(error instanceof PingTimeoutError);
        deaths.push([clock.monotonic(), error.message]);
      },
    },
  );
  return { clock, pings, deaths, heartbeat };
}

test('a quiet peer that answers is asked every twenty seconds, and lives', async () => {
  const { clock, pings, deaths, heartbeat } = world();
  await clock.advance(65_000);
  assert.deepEqual(pings, [20_000, 40_000, 60_000]);
  assert.equal(heartbeat.lastMs, 60_000);
  assert.deepEqual(deaths, []);
});

test('a peer that does not answer is dead thirty seconds after its last sign of life, once', async () => {
  const { clock, pings, deaths, heartbeat } = world('never');
  await clock.advance(7000);
  heartbeat.beat();
  await clock.advance(29_999);
  assert.deepEqual(pings, [27_000]);
  assert.deepEqual(deaths, []);
  await clock.advance(1);
  assert.deepEqual(deaths, [[37_000, 'nothing for 30 s, and no answer to a ping in 10 s']]);
  await clock.advance(100_000);
  assert.equal(deaths.length, 1);
  assert.equal(clock.pending, 0);
});

test('an answer in the last moment counts, and so does anything else that arrives', async () => {
  const late = world('late');
  await late.clock.advance(31_000);
  assert.deepEqual(late.deaths, []);
  const { clock, pings, deaths, heartbeat } = world('never');
  await clock.advance(25_000);
  heartbeat.beat();
  await clock.advance(19_999);
  assert.deepEqual(pings, [20_000], 'the peer has shown life without being asked again');
  await clock.advance(1);
  assert.deepEqual(pings, [20_000, 45_000]);
  await clock.advance(10_000);
  assert.equal(deaths[0]?.[0], 55_000);
});

test('a peer that talks is never asked', async () => {
  const { clock, pings, heartbeat } = world('never');
  for (let second = 0; second < 100; second++) {
    heartbeat.beat();
    await clock.advance(1000);
  }
  assert.deepEqual(pings, []);
});

test('after a sleep of our own the peer is asked again before it is given up', async () => {
  const { clock, pings, deaths } = world('never');
  await clock.advance(20_000);
  clock.sleptMs = 3600_000;
  await clock.advance(10_000);
  assert.deepEqual(pings, [20_000, 3630_000]);
  assert.deepEqual(deaths, []);
  await clock.advance(10_000);
  assert.equal(deaths.length, 1);
});

test('stopped, it asks no more', async () => {
  const { clock, pings, heartbeat } = world();
  heartbeat.stop();
  await clock.advance(100_000);
  assert.deepEqual(pings, []);
  assert.equal(clock.pending, 0);
});
