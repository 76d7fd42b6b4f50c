import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import * as fc from 'fast-check';
import { HttpClient, runControllers, silentLogger } from 'crd-controller';
import { CUSTOM_RESOURCE_DEFINITIONS, JOBS, PODS } from 'crd-controller/kinds';
import {
  ApiServer,
  checkConversion,
  Cluster,
  FakeClock,
  installWebhooks,
} from 'crd-controller/testing';
import { cronJobController } from '../cron-job-controller.ts';
import { CRON_JOBS, CRON_JOBS_V2 } from '../kinds.ts';
import type { CronJob, CronJobV2 } from '../kinds.ts';
import { webhooks } from '../webhooks.ts';

const MINUTE_MS = 60_000;
const START_MS = Date.UTC(2026, 0, 5);
const AT = { namespace: 'default', name: 'hello' };

type Spec = CronJob['spec'];

async function start(context: TestContext) {
  const clock = new FakeClock(START_MS);
  const server = new ApiServer({ clock });
  const client = new HttpClient({ handler: server.handler, server: 'https://test', clock });
  await client.create(CUSTOM_RESOURCE_DEFINITIONS, CRON_JOBS.definition);
  const stop = new AbortController();
  const controllers = ['job', 'scheduler', 'kubelet', 'garbage-collector'];
  const running = [
    new Cluster({ client, clock, log: silentLogger }, { controllers }).run(stop.signal),
    runControllers(
      { client, clock, freeze: true, controllers: (kit) => [cronJobController(kit)] },
      stop.signal,
    ),
  ];
  context.after(async () => {
    stop.abort();
    await clock.advance(MINUTE_MS);
    await Promise.all(running);
  });
  const status = async () => (await client.get(CRON_JOBS, AT)).status;
  return {
    clock,
    server,
    client,
    status,
    create: (spec: Partial<Spec> = {}, command = 'sleep 30') =>
      client.create(CRON_JOBS, cronJob(AT.name, spec, command)),
    change: (spec: object) => client.patch(CRON_JOBS, AT, { type: 'merge', body: { spec } }),
    /** Returns the runs that have Jobs, in minutes after the start. */
    runs: async () => {
      const { items } = await client.list(JOBS, { namespace: AT.namespace });
      const times = items.map(({ metadata }) => Number(metadata.name.split('-').at(-1)) * 1000);
      return times.map((ms) => (ms - START_MS) / MINUTE_MS);
    },
    condition: async (type: string) => {
      const condition = (await status())?.conditions?.find((one) => one.type === type);
      return `${condition?.status} ${condition?.reason}`;
    },
  };
}

function cronJob(name: string, spec: Partial<Spec>, command = 'true') {
  const containers = [{ name: 'hello', image: 'busybox:1.37', command: ['sh', '-c', command] }];
  const template = { spec: { restartPolicy: 'Never' as const, containers } };
  const jobTemplate = { metadata: { labels: { app: name } }, spec: { backoffLimit: 0, template } };
  return {
    apiVersion: 'batch.tutorial.kubebuilder.io/v1',
    kind: 'CronJob',
    metadata: { namespace: AT.namespace, name },
    // The server sets the other fields.
    spec: { schedule: '*/5 * * * *', jobTemplate, ...spec } as Spec,
  };
}

test('starts a Job at each scheduled time, and deletes old Jobs', async (context) => {
  const { clock, server, client, create, change, runs, status, condition } = await start(context);
  await create({ successfulJobsHistoryLimit: 2 });
  await clock.advance(1000);
  assert.equal(await condition('Available'), 'True NoJobsActive');
  await clock.advance(5 * MINUTE_MS);
  const { active, lastScheduleTime } = (await status()) ?? {};
  assert.deepEqual(
    active?.map(({ name }) => name),
    [`hello-${START_MS / 1000 + 300}`],
  );
  assert.equal(lastScheduleTime, '2026-01-05T00:05:00Z');
  assert.equal(await condition('Progressing'), 'True JobsActive');
  await clock.advance(11 * MINUTE_MS);
  assert.deepEqual(await runs(), [10, 15]);
  assert.equal(await condition('Progressing'), 'False NoJobsActive');

  // Nothing is written between two runs.
  const { revision } = server;
  await clock.advance(MINUTE_MS);
  assert.equal(server.revision, revision);

  // A run is not repeated if its Job is deleted.
  await change({ successfulJobsHistoryLimit: 0 });
  await clock.advance(MINUTE_MS);
  assert.deepEqual(await runs(), []);
  assert.equal((await status())?.lastScheduleTime, '2026-01-05T00:15:00Z');

  await clock.advance(2 * MINUTE_MS);
  assert.deepEqual(await runs(), [20]);
  await client.delete(CRON_JOBS, AT);
  await clock.advance(MINUTE_MS);
  assert.deepEqual(await runs(), []);
  assert.deepEqual((await client.list(PODS)).items, []);
});

test('a run that is due while another one is active follows the concurrency policy', async (context) => {
  const { clock, create, change, runs } = await start(context);
  await create({ concurrencyPolicy: 'Forbid' }, 'sleep 400');
  await clock.advance(11 * MINUTE_MS);
  assert.deepEqual(await runs(), [5]);
  await clock.advance(MINUTE_MS);
  assert.deepEqual(await runs(), [5, 10]);
  await change({ concurrencyPolicy: 'Allow' });
  await clock.advance(4 * MINUTE_MS);
  assert.deepEqual(await runs(), [5, 10, 15]);
  await change({ concurrencyPolicy: 'Replace' });
  await clock.advance(5 * MINUTE_MS);
  assert.deepEqual(await runs(), [5, 10, 20]);
});

test('after a suspension, only the last run starts, if its deadline has not passed', async (context) => {
  const { clock, create, change, runs, condition } = await start(context);
  await create({ suspend: true, startingDeadlineSeconds: 60 });
  await clock.advance(17 * MINUTE_MS);
  assert.equal(await condition('Available'), 'False Suspended');
  await change({ suspend: false });
  await clock.advance(1000);
  assert.deepEqual(await runs(), []);
  assert.equal(await condition('Degraded'), 'True MissedSchedule');
  await change({ startingDeadlineSeconds: 180 });
  await clock.advance(1000);
  assert.deepEqual(await runs(), [15]);
  assert.equal(await condition('Degraded'), 'False AsExpected');
});

test('reports malformed schedules, failed Jobs and invalid templates', async (context) => {
  const { clock, create, change, condition, runs } = await start(context);
  await create({ schedule: '0 25 * * *' }, 'exit 1');
  await clock.advance(1000);
  assert.equal(await condition('Degraded'), 'True InvalidSchedule');
  await change({ schedule: '*/5 * * * *' });
  await clock.advance(6 * MINUTE_MS);
  assert.equal(await condition('Degraded'), 'True JobsFailed');
  const template = { spec: { restartPolicy: 'Always' } };
  await change({ jobTemplate: { spec: { template } } });
  await clock.advance(5 * MINUTE_MS);
  assert.equal(await condition('Degraded'), 'True JobCreationFailed');
  assert.deepEqual(await runs(), [5]);
});

test('the webhooks set defaults, reject schedules, and convert versions', async (context) => {
  const { clock, server, client, change, runs, condition } = await start(context);
  await installWebhooks(server, client, webhooks, { clock });
  const { spec } = cronJob(AT.name, {});
  const { schedule: _, ...others } = spec;
  const v2 = { ...cronJob(AT.name, {}), apiVersion: 'batch.tutorial.kubebuilder.io/v2' };
  const schedule = { minute: '*/5' } as CronJobV2['spec']['schedule'];
  const template = { spec: { containers: spec.jobTemplate.spec?.template.spec?.containers ?? [] } };
  const created = await client.create(CRON_JOBS_V2, {
    ...v2,
    spec: { ...others, schedule, jobTemplate: { spec: { template } } },
  });
  assert.equal(created.spec.jobTemplate.spec?.template.spec?.restartPolicy, 'OnFailure');
  assert.equal((await client.get(CRON_JOBS, AT)).spec.schedule, '*/5 * * * *');
  await clock.advance(6 * MINUTE_MS);
  assert.deepEqual(await runs(), [5]);

  await change({ schedule: '@daily' });
  const { spec: daily, status } = await client.get(CRON_JOBS_V2, AT);
  const midnight = { minute: '0', hour: '0', dayOfMonth: '*', month: '*', dayOfWeek: '*' };
  assert.deepEqual(daily.schedule, midnight);
  assert.equal(status?.lastScheduleTime, '2026-01-05T00:05:00Z');

  const hour = { spec: { schedule: { hour: '25' } } };
  await assert.rejects(
    client.patch(CRON_JOBS_V2, AT, { type: 'merge', body: hour }),
    /spec.schedule: Invalid value: "0 25 \* \* \*": hour 25 is not between 0 and 23/,
  );
  await assert.rejects(client.create(CRON_JOBS, cronJob('never', { schedule: '0 0 30 2 *' })), {
    kind: 'invalid',
  });
  await assert.rejects(client.create(CRON_JOBS, cronJob('a'.repeat(53), {})), /52 characters/);
  assert.equal(await condition('Available'), 'True NoJobsActive');
});

test('no conversion loses data', () => {
  checkConversion(fc, { crd: CRON_JOBS.definition, webhooks, numRuns: 20 });
});
