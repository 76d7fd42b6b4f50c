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

  it('reports a schedule without any time', async () => {
    await create(['true'], { schedule: '59 23 31 2 *' });
    await bench.pass(1000);
    const why = 'time difference between two schedules is less than 1 second';
    const event = `InvalidSchedule invalid schedule: 59 23 31 2 * : ${why}`;
    assert.deepEqual(await bench.events('cron'), [event]);
  });

  it('starts no Job while it is suspended', async () => {
    await create(['true'], { suspend: true });
    await bench.pass(3 * MINUTE_MS);
    assert.deepEqual(await names(), []);
  });
});
