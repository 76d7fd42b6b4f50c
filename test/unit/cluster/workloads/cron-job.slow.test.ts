import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { CRON_JOBS, JOBS, PODS } from '../../../../src/api/builtin.ts';
import { ClusterBench } from '../cluster-bench.ts';

const MINUTE_MS = 60_000;

describe('A CronJob', () => {
  let bench: ClusterBench;
  beforeEach(async () => {
    bench = new ClusterBench();
    await bench.start({
      controllers: ['cronjob', 'job', 'garbage-collector', 'scheduler', 'kubelet', 'events'],
    });
  });
  afterEach(() => bench.end());

  const create = (command: string[], spec: object = {}) => {
    const containers = [{ name: 'app', image: 'busybox', command }];
    const template = { spec: { restartPolicy: 'Never', containers } };
    const jobTemplate = { spec: { backoffLimit: 0, template } };
    return bench.create(CRON_JOBS, 'cron', {
      spec: { schedule: '* * * * *', jobTemplate, ...spec },
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
    assert.deepEqual(await bench.events('cron'), [
      `SuccessfulCreate Created job ${first}`,
      `SuccessfulDelete Deleted job ${first}`,
      `SuccessfulCreate Created job ${second}`,
    ]);
  });

  for (const [command, limits, kept] of [
    ['true', {}, 3],
    ['false', {}, 1],
    ['true', { successfulJobsHistoryLimit: 0, failedJobsHistoryLimit: 2 }, 0],
    ['false', { successfulJobsHistoryLimit: 0, failedJobsHistoryLimit: 2 }, 2],
  ] as const) {
    it(`keeps ${kept} Jobs whose command is ${command}, with ${JSON.stringify(limits)}`, async () => {
      await create([command], limits);
      await bench.pass(5.5 * MINUTE_MS);
      assert.equal((await names()).length, kept);
    });
  }

  for (const [startingDeadlineSeconds, started] of [
    [undefined, 1],
    [40, 1],
    [20, 0],
  ] as const) {
    it(`starts ${started} Jobs 30 s after the last time, with a deadline of ${startingDeadlineSeconds} s`, async () => {
      await bench.pass(MINUTE_MS - (bench.clock.now() % MINUTE_MS));
      await create(['true'], { suspend: true, startingDeadlineSeconds });
      await bench.pass(3.5 * MINUTE_MS);
      await bench.merge(CRON_JOBS, 'cron', { spec: { suspend: false } });
      await bench.pass(1000);
      assert.equal((await names()).length, started);
    });
  }

  it('accepts a Job of the next name, and reports a failure', async () => {
    await bench.pass(MINUTE_MS - (bench.clock.now() % MINUTE_MS));
    const minute = bench.clock.now() / MINUTE_MS;
    const containers = [{ name: 'app', image: 'busybox' }];
    const template = { spec: { restartPolicy: 'Never', containers } };
    await bench.create(JOBS, `cron-${minute + 1}`, { spec: { template } });
    await create(['true']);
    await bench.pass(MINUTE_MS);
    assert.deepEqual(await bench.events('cron'), []);
    bench.server.faults.failNext({ method: 'POST', resource: 'jobs' }, 500);
    await bench.pass(MINUTE_MS + 2000);
    const [failure, ...others] = await bench.events('cron');
    assert.match(failure ?? '', /^FailedCreate Error creating job: /);
    assert.ok(others.includes(`SuccessfulCreate Created job cron-${minute + 2}`));
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

  it('reports a schedule without any time', async () => {
    await create(['true'], { schedule: '59 23 31 2 *' });
    await bench.pass(1000);
    const why = 'time difference between two schedules is less than 1 second';
    const event = `InvalidSchedule invalid schedule: 59 23 31 2 * : ${why}`;
    assert.deepEqual(await bench.events('cron'), [event]);
  });
});
