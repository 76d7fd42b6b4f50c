import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PingTimeoutError } from '../../../../src/client/transport/connection-error.ts';
import { ConnectionHealthCheck } from '../../../../src/client/transport/health-check.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';

/** Time passes while this machine is suspended; timers fire late. */
class SuspendableClock extends FakeClock {
  sleptMs = 0;

  override monotonic(): number {
    return super.monotonic() + this.sleptMs;
  }
}

function newFixture(answers: 'at once' | 'late' | 'never' = 'at once') {
  const clock = new SuspendableClock();
  const pings: number[] = [];
  const deaths: [number, string][] = [];
  const heartbeat: ConnectionHealthCheck = new ConnectionHealthCheck(
    clock,
    { pingAfterMs: 20_000, pingTimeoutMs: 10_000 },
    {
      ping: () => {
        pings.push(clock.monotonic());
        if (answers === 'at once') heartbeat.received();
        if (answers === 'late') clock.after(9999, () => heartbeat.received());
      },
      onDead: (error) => {
        assert.ok(error instanceof PingTimeoutError);
        deaths.push([clock.monotonic(), error.message]);
      },
    },
  );
  return { clock, pings, deaths, heartbeat };
}

test('pings an idle peer every 20 s and keeps the connection while it responds', async () => {
  const { clock, pings, deaths, heartbeat } = newFixture();
  await clock.advance(65_000);
  assert.deepEqual(pings, [20_000, 40_000, 60_000]);
  assert.equal(heartbeat.lastMs, 60_000);
  assert.deepEqual(deaths, []);
});

test('reports a dead peer once, 30 s after data was last received', async () => {
  const { clock, pings, deaths, heartbeat } = newFixture('never');
  await clock.advance(7000);
  heartbeat.received();
  await clock.advance(29_999);
  assert.deepEqual(pings, [27_000]);
  assert.deepEqual(deaths, []);
  await clock.advance(1);
  assert.deepEqual(deaths, [
    [37_000, 'nothing received for 30 s, and no response to a ping within 10 s'],
  ]);
  await clock.advance(100_000);
  assert.equal(deaths.length, 1);
  assert.equal(clock.pending, 0);
});

test('accepts a response at the last moment, and any other received data', async () => {
  const late = newFixture('late');
  await late.clock.advance(31_000);
  assert.deepEqual(late.deaths, []);
  const { clock, pings, deaths, heartbeat } = newFixture('never');
  await clock.advance(25_000);
  heartbeat.received();
  await clock.advance(19_999);
  assert.deepEqual(pings, [20_000], 'no second ping after received data');
  await clock.advance(1);
  assert.deepEqual(pings, [20_000, 45_000]);
  await clock.advance(10_000);
  assert.equal(deaths[0]?.[0], 55_000);
});

test('does not ping while data is received', async () => {
  const { clock, pings, heartbeat } = newFixture('never');
  for (let second = 0; second < 100; second++) {
    heartbeat.received();
    await clock.advance(1000);
  }
  assert.deepEqual(pings, []);
});

test('pings again after this machine was suspended', async () => {
  const { clock, pings, deaths } = newFixture('never');
  await clock.advance(20_000);
  clock.sleptMs = 3600_000;
  await clock.advance(10_000);
  assert.deepEqual(pings, [20_000, 3630_000]);
  assert.deepEqual(deaths, []);
  await clock.advance(10_000);
  assert.equal(deaths.length, 1);
});

test('sends no ping after stop', async () => {
  const { clock, pings, heartbeat } = newFixture();
  heartbeat.stop();
  await clock.advance(100_000);
  assert.deepEqual(pings, []);
  assert.equal(clock.pending, 0);
});
