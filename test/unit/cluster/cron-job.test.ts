import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it, test } from 'node:test';
import { CRON_JOBS, JOBS, PODS } from '../../../src/api/builtin.ts';
import { CronSchedule } from '../../../src/cluster/cron-schedule.ts';
import { ClusterBench } from './cluster-bench.ts';

const MINUTE_MS = 60_000;

describe('A cron schedule', () => {
  for (const [schedule, from, next, timeZone] of [
    ['*/15 * * * *', '2026-01-01T00:00:00Z', '2026-01-01T00:15:00Z'],
    ['0 9-17/4 * * mon-fri', '2026-01-02T17:30:00Z', '2026-01-05T09:00:00Z'],
    ['30 4 1,15 * 5', '2026-01-03T00:00:00Z', '2026-01-09T04:30:00Z'],
    ['@yearly', '2026-01-01T00:00:00Z', '2027-01-01T00:00:00Z'],
    ['0 0 29 2 *', '2026-01-01T00:00:00Z', '2028-02-29T00:00:00Z'],
    ['0 12 * * 7', '2026-01-01T00:00:00Z', '2026-01-04T12:00:00Z'],
    ['0 8 * * *', '2026-07-01T00:00:00Z', '2026-07-01T06:00:00Z', 'Europe/Berlin'],
    ['0 8 * * *', '2026-01-01T00:00:00Z', '2026-01-01T07:00:00Z', 'Europe/Berlin'],
  ] as const) {
    it(`${schedule} comes after ${from} at ${next}`, () => {
      const cron = new CronSchedule(schedule, timeZone);
      const nextMs = cron.after(Date.parse(from))!;
      assert.equal(nextMs, Date.parse(next));
      assert.equal(cron.last(nextMs + 30_000, Date.parse(from)), nextMs);
      assert.equal(cron.last(nextMs - 1, Date.parse(from)), undefined);
    });
  }

  test('is rejected if it is malformed', () => {
    for (const schedule of ['* * * *', '60 * * * *', '*/0 * * * *', '5-1 * * * *', 'a * * * *']) {
      assert.throws(() => new CronSchedule(schedule), RangeError, schedule);
    }
    assert.throws(() => new CronSchedule('* * * * *', 'Nowhere'), RangeError);
  });
});

describe('A CronJob', () => {
  let bench: ClusterBench;
  beforeEach(async () => {
    bench = new ClusterBench();
    await bench.start();
  });
  afterEach(() => bench.end());

  const create = (command: string[], spec: object = {}) => {
    const containers = [{ name: 'app', image: 'busybox', command }];
    const template = { spec: { restartPolicy: 'Never', containers } };
    return bench.create(CRON_JOBS, 'cron', {
      spec: { schedule: '* * * * *', jobTemplate: { spec: { template } }, ...spec },
    });
  };
  const names = async () => (await bench.list(JOBS)).map(({ metadata }) => metadata.name);
  const status = async () => (await bench.get(CRON_JOBS, 'cron')).status;

  it('creates a Job at each scheduled time, and keeps the last ones', async () => {
    await create(['true'], { successfulJobsHistoryLimit: 2 });
    await bench.pass(50_000);
    assert.deepEqual(await names(), []);
    const minute = Math.floor(bench.clock.now() / MINUTE_MS) + 1;
    await bench.pass(4 * MINUTE_MS);
    assert.deepEqual(await names(), [`cron-${minute + 2}`, `cron-${minute + 3}`]);
    assert.ok((await status())?.lastSuccessfulTime);
    assert.equal((await status())?.active, undefined);
    const events = await bench.events('cron');
    for (const event of [
      `SuccessfulCreate Created job cron-${minute}`,
      `SawCompletedJob Saw completed job: cron-${minute}, condition: Complete`,
      `SuccessfulDelete Deleted job cron-${minute}`,
    ]) {
      assert.ok(events.includes(event), event);
    }
    // Their Pods go with them.
    assert.equal((await bench.list(PODS)).length, 2);
  });

  it('starts no Job while another one runs, if it forbids that', async () => {
    await create(['sleep', '150'], { concurrencyPolicy: 'Forbid' });
    await bench.pass(3 * MINUTE_MS);
    assert.equal((await names()).length, 1);
    assert.equal((await status())?.active?.length, 1);
    assert.ok((await bench.events('cron')).some((event) => event.startsWith('JobAlreadyActive')));
  });

  it('replaces the Job that runs, if it says so', async () => {
    await create(['nginx'], { concurrencyPolicy: 'Replace' });
    await bench.pass(MINUTE_MS);
    const [first] = await names();
    await bench.pass(MINUTE_MS);
    const [second, ...others] = await names();
    assert.deepEqual(others, []);
    assert.notEqual(second, first);
  });

  it('reports a running Job that a client deleted', async () => {
    await create(['nginx'], { concurrencyPolicy: 'Forbid' });
    await bench.pass(MINUTE_MS);
    const [name = ''] = await names();
    await bench.client.delete(JOBS, { namespace: 'default', name });
    await bench.pass(1000);
    assert.ok((await bench.events('cron')).includes(`MissingJob Active job went missing: ${name}`));
    assert.equal((await status())?.active, undefined);
  });

  it('starts no Job while it is suspended', async () => {
    await create(['true'], { suspend: true });
    await bench.pass(3 * MINUTE_MS);
    assert.deepEqual(await names(), []);
  });
});
