import { Controller, CronSchedule, done, HttpClient } from 'crd-controller';
import { requeueAt, runControllers } from 'crd-controller';
import { NAMESPACES } from 'crd-controller/kinds';
import { ApiServer, FakeClock } from 'crd-controller/testing';
import type { ControllerKit } from 'crd-controller';

const SCHEDULE = 'example.com/schedule';
const LAST_RUN = 'example.com/last-run';
const runs: string[] = [];

/** Runs a command for each Namespace with a schedule. */
function scheduler(kit: ControllerKit): Controller {
  const namespaces = kit.informers.for(NAMESPACES);
  return new Controller(kit, {
    name: 'scheduler',
    kind: 'Namespace',
    sync: async (key, { client, signal }) => {
      const namespace = namespaces.lister.get(key);
      const { [SCHEDULE]: text, [LAST_RUN]: last } = namespace?.metadata.annotations ?? {};
      if (!namespace || !text) return done();
      const schedule = new CronSchedule(text, 'Europe/Berlin');
      const now = kit.clock.now();
      const lastMs = Date.parse(last ?? namespace.metadata.creationTimestamp);
      // If several runs were missed, only the last one is made up for.
      const dueMs = schedule.last(now, lastMs);
      if (dueMs !== undefined) {
        const due = new Date(dueMs).toISOString();
        runs.push(due);
        const body = { metadata: { annotations: { [LAST_RUN]: due } } };
        await client.patch(NAMESPACES, namespace.metadata, { type: 'merge', body }, { signal });
      }
      const nextMs = schedule.next(now);
      return nextMs === undefined ? done() : requeueAt(nextMs, 'its schedule is due');
    },
  }).for(namespaces);
}

const clock = new FakeClock(Date.UTC(2026, 0, 5, 5)); // A Monday.
const handler = new ApiServer({ clock }).handler;
const client = new HttpClient({ handler, server: 'https://test', clock });
const stop = new AbortController();
const running = runControllers(
  { client, clock, controllers: (kit) => [scheduler(kit)] },
  stop.signal,
);
await client.create(NAMESPACES, {
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: 'team', annotations: { [SCHEDULE]: '30 7 * * mon-fri' } },
});
await clock.advance(26 * 3_600_000);
console.log(runs.join()); // prints: 2026-01-05T06:30:00.000Z,2026-01-06T06:30:00.000Z
stop.abort();
await clock.advance(30_000);
await running;
