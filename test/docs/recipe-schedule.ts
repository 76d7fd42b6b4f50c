import { CronSchedule, deleteOwnedObject, finishedCondition, HttpClient } from 'crd-controller';
import { objectController, OwnedObjects, requeueAt, runControllers } from 'crd-controller';
import { CUSTOM_RESOURCE_DEFINITIONS, EVENTS, JOBS } from 'crd-controller/kinds';
import * as s from 'crd-controller/schema';
import { ApiServer, Cluster, FakeClock } from 'crd-controller/testing';
import { silentLogger } from 'crd-controller';
import type { Controller, ControllerKit, Readiness } from 'crd-controller';

const SNAPSHOTS = s.customResource({
  group: 'example.com',
  version: 'v1',
  kind: 'Snapshot',
  plural: 'snapshots',
  spec: s.object({
    schedule: s.string({ maxLength: 128 }),
    timeZone: s.string(),
    keep: s.integer({ minimum: 1 }),
  }),
  status: s.status({ lastRun: s.optional(s.dateTime()) }),
});

/** Starts a Job at each scheduled time of a Snapshot, and deletes old Jobs. */
function snapshotController(kit: ControllerKit): Controller {
  const jobs = kit.informers.for(JOBS);
  const owned = new OwnedObjects(SNAPSHOTS, 'snapshot-controller').add(jobs);
  return objectController(kit, kit.informers.for(SNAPSHOTS), {
    name: 'snapshot',
    reconcile: async (snapshot, context) => {
      const { metadata, spec, status } = snapshot;
      const problem = CronSchedule.problemOf(spec.schedule, spec.timeZone);
      if (problem) return { kind: 'stalled', reason: 'InvalidSchedule', message: problem };
      const schedule = new CronSchedule(spec.schedule, spec.timeZone);
      const now = kit.clock.now();
      const ended = owned.of(jobs, snapshot).filter((job) => finishedCondition(job));
      const byName = ended.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
      const last = finishedCondition(byName.at(-1));
      const readiness: Readiness =
        last?.type === 'Failed'
          ? { kind: 'reconciling', reason: 'RunFailed', message: last.message ?? '' }
          : { kind: 'ready', reason: 'Scheduled', message: 'Runs on schedule' };
      // If several runs were missed, only the last one is made up for.
      const dueMs = schedule.last(now, Date.parse(status?.lastRun ?? metadata.creationTimestamp));
      if (dueMs !== undefined) {
        const containers = [
          { name: 'snapshot', image: 'acme/snapshot:1', command: ['sleep', '5'] },
        ];
        // The time is in the name: a repeated sync does not create a second Job.
        const name = `${metadata.name}-${dueMs / 60_000}`;
        const job = {
          apiVersion: 'batch/v1',
          kind: 'Job',
          metadata: { name },
          spec: { template: { spec: { restartPolicy: 'Never', containers } } },
        };
        const [created] = await owned.ensure(context, snapshot, [job]);
        if (created?.kind === 'terminating') {
          const message = `Job "${name}" is being deleted`;
          return { kind: 'reconciling', reason: 'JobTerminating', message };
        }
        // The event is recorded before lastRun is written, so a crash does not lose it.
        return {
          ...readiness,
          status: { lastRun: new Date(dueMs).toISOString() },
          event: { reason: 'SuccessfulCreate', message: `Created job ${name}` },
        };
      }
      for (const old of byName.slice(0, -spec.keep)) await deleteOwnedObject(context, JOBS, old);
      return { ...readiness, outcome: requeueAt(schedule.next(now), 'its schedule is due') };
    },
  }).owns(owned);
}

const clock = new FakeClock(Date.UTC(2026, 0, 5, 5, 40)); // A Monday.
const handler = new ApiServer({ clock }).handler;
const client = new HttpClient({ handler, server: 'https://test', clock });
await client.create(CUSTOM_RESOURCE_DEFINITIONS, SNAPSHOTS.definition);
const stop = new AbortController();
const running = Promise.all([
  new Cluster({ client, clock, log: silentLogger }).run(stop.signal),
  runControllers({ client, clock, controllers: (kit) => [snapshotController(kit)] }, stop.signal),
]);
const AT = { namespace: 'default', name: 'orders' };
await client.create(SNAPSHOTS, {
  apiVersion: 'example.com/v1',
  kind: 'Snapshot',
  metadata: AT,
  spec: { schedule: '*/10 7-19 * * mon-fri', timeZone: 'Europe/Berlin', keep: 2 },
});
await clock.advance(55 * 60_000);
const { status } = await client.get(SNAPSHOTS, AT);
console.log(status?.lastRun); // prints: 2026-01-05T06:30:00.000Z
console.log((await client.list(JOBS)).items.length); // prints: 2
const events = (await client.list(EVENTS)).items.filter(
  (event) => event.reason === 'SuccessfulCreate' && event.involvedObject.kind === 'Snapshot',
);
console.log(events.length); // prints: 4
stop.abort();
await clock.advance(60_000);
await running;
