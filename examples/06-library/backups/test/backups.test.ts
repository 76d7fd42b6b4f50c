import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { HttpClient, runControllers, silentLogger } from 'crd-controller';
import type { Resource } from 'crd-controller';
import { CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, EVENTS, JOBS } from 'crd-controller/kinds';
import { ApiServer, Cluster, FakeClock } from 'crd-controller/testing';
import { backupController, restoreController } from '../backup-operator.ts';
import { BACKUPS, RESTORES } from '../kinds.ts';
import type { Backup, Restore } from '../kinds.ts';

const NAMESPACE = 'default';
const PERIOD_MS = 300_000;
const MONDAY = Date.UTC(2026, 0, 5);

async function start(context: TestContext) {
  const clock = new FakeClock(MONDAY);
  const server = new ApiServer({ clock });
  const client = new HttpClient({ handler: server.handler, server: 'https://test', clock });
  for (const { definition } of [BACKUPS, RESTORES]) {
    await client.create(CUSTOM_RESOURCE_DEFINITIONS, definition);
  }
  const stop = new AbortController();
  const controllers = ['job', 'scheduler', 'kubelet', 'garbage-collector'];
  const running = [
    new Cluster({ client, clock, log: silentLogger }, { controllers }).run(stop.signal),
    runControllers(
      {
        client,
        clock,
        freeze: true,
        controllers: (kit) => [backupController(kit), restoreController(kit)],
      },
      stop.signal,
    ),
  ];
  context.after(async () => {
    stop.abort();
    await clock.advance(60_000);
    await Promise.all(running);
  });
  return {
    clock,
    server,
    client,
    backUp: (spec: object = {}) =>
      client.create(BACKUPS, {
        apiVersion: 'example.com/v1',
        kind: 'Backup',
        metadata: { namespace: NAMESPACE, name: 'shop' },
        spec: {
          schedule: '*/5 * * * *',
          image: 'busybox:1.37',
          backupCommand: ['sh', '-c', 'sleep 30'],
          restoreCommand: ['sh', '-c', 'echo "$BUCKET/$RUN"'],
          settings: { BUCKET: 's3://shop' },
          keep: 2,
          ...spec,
        },
      }),
    restore: (spec: object = {}) =>
      client.create(RESTORES, {
        apiVersion: 'example.com/v1',
        kind: 'Restore',
        metadata: { namespace: NAMESPACE, name: 'now' },
        spec: { backup: 'shop', ...spec },
      }),
    jobs: async () =>
      (await client.list(JOBS, { namespace: NAMESPACE })).items.map(
        ({ metadata }) => metadata.name,
      ),
    ready: async <T extends Backup | Restore>(kind: Resource<T>, name: string) => {
      const { status } = await client.get(kind, { namespace: NAMESPACE, name });
      const ready = status?.conditions?.find(({ type }) => type === 'Ready');
      return `${ready?.status} ${ready?.reason}: ${ready?.message}`;
    },
  };
}

/** Returns a run by its number. */
const runOf = (index: number) => `shop-${(MONDAY + index * PERIOD_MS) / 60_000}`;

test('runs on its schedule, one Job at a time, and keeps the last two', async (context) => {
  const { clock, server, client, backUp, jobs, ready } = await start(context);
  await backUp();
  await clock.advance(1000);
  assert.equal(await ready(BACKUPS, 'shop'), 'True Scheduled: No run has ended');
  await clock.advance(3 * PERIOD_MS + 60_000);
  assert.deepEqual(await jobs(), [runOf(2), runOf(3)]);
  const { status } = await client.get(BACKUPS, { namespace: NAMESPACE, name: 'shop' });
  assert.equal(status?.lastSuccessful, runOf(3));

  // A run of one and a half periods delays the next one.
  const body = { spec: { backupCommand: ['sh', '-c', 'sleep 450'] } };
  await client.patch(BACKUPS, { namespace: NAMESPACE, name: 'shop' }, { type: 'merge', body });
  await clock.advance(2 * PERIOD_MS);
  assert.deepEqual(await jobs(), [runOf(2), runOf(3), runOf(4)]);
  await clock.advance(PERIOD_MS / 2);
  assert.deepEqual(await jobs(), [runOf(3), runOf(4), runOf(5)]);

  // Nothing is written between two runs.
  const { revision } = server;
  await clock.advance(60_000);
  assert.equal(server.revision, revision);
});

test('restores the last run once there is one, and only once', async (context) => {
  const { clock, client, backUp, restore, jobs, ready } = await start(context);
  await restore();
  await clock.advance(1000);
  assert.match(await ready(RESTORES, 'now'), /^False WaitingForRun/);
  await backUp();
  await clock.advance(PERIOD_MS + 60_000);
  assert.equal(await ready(RESTORES, 'now'), `True Complete: Restored ${runOf(1)}`);
  const at = { namespace: NAMESPACE, name: 'now-restore' };
  const { spec } = await client.get(JOBS, at);
  assert.deepEqual(spec?.template.spec?.containers[0]?.env, [{ name: 'RUN', value: runOf(1) }]);
  await client.delete(JOBS, at, { propagationPolicy: 'Background' });
  await clock.advance(PERIOD_MS);
  assert.ok(!(await jobs()).includes('now-restore'));
});

test('reports failed runs, failed restores and malformed schedules', async (context) => {
  const { clock, client, backUp, restore, ready } = await start(context);
  const at = { namespace: NAMESPACE, name: 'shop' };
  const fails = ['sh', '-c', 'exit 1'];
  await backUp({ schedule: '0 25 * * *', backupCommand: fails, restoreCommand: fails });
  await clock.advance(1000);
  assert.match(await ready(BACKUPS, 'shop'), /^False BadSchedule: hour 25/);
  await client.patch(BACKUPS, at, { type: 'merge', body: { spec: { schedule: '*/5 * * * *' } } });
  await clock.advance(PERIOD_MS + 60_000);
  assert.equal(await ready(BACKUPS, 'shop'), `False RunFailed: The last run is ${runOf(1)}`);
  await restore({ run: 'shop-1' });
  await clock.advance(60_000);
  assert.equal(await ready(RESTORES, 'now'), 'False Failed: shop-1 is not restored');
  const { items } = await client.list(EVENTS);
  assert.ok(items.some(({ reason }) => reason === 'BadSchedule'));
  assert.ok(items.some(({ reason }) => reason === 'RunFailed'));
});

test('the Jobs and the ConfigMap are deleted with their Backup', async (context) => {
  const { clock, client, backUp, jobs } = await start(context);
  await backUp();
  await clock.advance(PERIOD_MS + 60_000);
  await client.delete(BACKUPS, { namespace: NAMESPACE, name: 'shop' });
  await clock.advance(60_000);
  assert.deepEqual(await jobs(), []);
  assert.deepEqual((await client.list(CONFIG_MAPS, { namespace: NAMESPACE })).items, []);
});

test('waits while another object has the name of the ConfigMap', async (context) => {
  const { clock, client, backUp, ready } = await start(context);
  const at = { namespace: NAMESPACE, name: 'shop' };
  await client.create(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata: at });
  await backUp();
  await clock.advance(60_000);
  assert.equal((await client.get(CONFIG_MAPS, at)).data, undefined);
  await client.delete(CONFIG_MAPS, at);
  await clock.advance(60_000);
  assert.deepEqual((await client.get(CONFIG_MAPS, at)).data, { BUCKET: 's3://shop' });
  assert.match(await ready(BACKUPS, 'shop'), /^True/);
});
