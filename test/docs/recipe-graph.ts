import { finishedCondition, HttpClient, objectController, OwnedObjects } from 'crd-controller';
import { isReady, runControllers, silentLogger } from 'crd-controller';
import type { Controller, ControllerKit, OwnedNode } from 'crd-controller';
import {
  CUSTOM_RESOURCE_DEFINITIONS,
  DEPLOYMENTS,
  JOBS,
  STATEFUL_SETS,
} from 'crd-controller/kinds';
import type { Job } from 'crd-controller/kinds';
import * as s from 'crd-controller/schema';
import { ApiServer, Cluster, FakeClock } from 'crd-controller/testing';

const SHOPS = s.customResource({
  group: 'example.com',
  version: 'v1',
  kind: 'Shop',
  plural: 'shops',
  spec: s.object({ version: s.string() }),
  status: s.status({}),
});

/** A database, the migration of its schema, and the shop itself, each after the one before. */
function nodesOf(name: string, version: string): OwnedNode[] {
  const pod = (app: string, image: string, command: string) => {
    const labels = { app: `${name}-${app}` };
    const containers = [{ name: app, image, command: [command] }];
    return {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers } },
    };
  };
  const database = {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name: `${name}-database` },
    spec: { serviceName: '', ...pod('database', 'postgres', 'postgres') },
  };
  const { template } = pod('migration', `shop:${version}`, 'true');
  const migration = {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: `${name}-migration-${version}` },
    spec: { template: { spec: { ...template.spec, restartPolicy: 'Never' } } },
  };
  const web = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: `${name}-web` },
    spec: pod('web', `shop:${version}`, 'shop'),
  };
  return [
    { object: database },
    { object: migration, dependsOn: [database], readiness: isMigrated },
    { object: web, dependsOn: [migration] },
  ];
}

/** The Deployment waits for the end of the Job. */
function isMigrated(job: Job) {
  const end = finishedCondition(job);
  if (!end) return { kind: 'reconciling', reason: 'Migrating', message: 'it runs' } as const;
  return end.type === 'Complete'
    ? ({ kind: 'ready', reason: 'Migrated', message: 'it is complete' } as const)
    : ({ kind: 'stalled', reason: 'MigrationFailed', message: end.message ?? '' } as const);
}

function shopController(kit: ControllerKit): Controller {
  const owned = new OwnedObjects(SHOPS, 'shop-controller')
    .add(kit.informers.for(STATEFUL_SETS))
    .add(kit.informers.for(JOBS), { prune: true })
    .add(kit.informers.for(DEPLOYMENTS));
  return objectController(kit, kit.informers.for(SHOPS), {
    name: 'shop',
    finalizer: 'example.com/shop',
    reconcile: async (shop, context) => {
      const nodes = nodesOf(shop.metadata.name, shop.spec.version);
      return (await owned.ensureGraph(context, shop, nodes)).readiness;
    },
    cleanUp: (shop, context) =>
      owned.deleteGraph(context, shop, nodesOf(shop.metadata.name, shop.spec.version)),
  }).owns(owned);
}

const clock = new FakeClock();
const handler = new ApiServer({ clock }).handler;
const client = new HttpClient({ handler, server: 'https://test', clock });
await client.create(CUSTOM_RESOURCE_DEFINITIONS, SHOPS.definition);
const stop = new AbortController();
const ended = Promise.all([
  new Cluster({ client, clock, log: silentLogger }, { kubelet: { startupMs: 5000 } }).run(
    stop.signal,
  ),
  runControllers({ client, clock, controllers: [shopController] }, stop.signal),
]);
const at = { namespace: 'default', name: 'books' };
await client.create(SHOPS, {
  apiVersion: 'example.com/v1',
  kind: 'Shop',
  metadata: at,
  spec: { version: 'v1' },
});
await clock.advance(100);
const { status } = await client.get(SHOPS, at);
const message = status?.conditions?.find(({ type }) => type === 'Ready')?.message ?? '';
console.log(message.split('; ')[0]); // prints: StatefulSet "books-database": Ready: 0/1
console.log(message.split('; ')[1]); // prints: Job "books-migration-v1" waits for StatefulSet "books-database"
await clock.advance(30_000);
console.log(isReady(await client.get(SHOPS, at))); // prints: true
await client.delete(SHOPS, at);
await clock.advance(60_000);
const { items } = await client.list(STATEFUL_SETS, { namespace: 'default' });
console.log(items.length); // prints: 0
stop.abort();
await clock.advance(30_000);
await ended;
