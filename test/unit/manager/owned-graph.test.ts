import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CONFIG_MAPS, DEPLOYMENTS, JOBS } from '../../../src/api/builtin.ts';
import type { ConfigMap, Deployment, Job } from '../../../src/api/builtin.ts';
import type { KubernetesObject } from '../../../src/api/object.ts';
import type { Resource } from '../../../src/api/resource.ts';
import { finishedCondition } from '../../../src/api/workloads.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { InformerSet } from '../../../src/cache/informer-set.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { OwnedObjects } from '../../../src/manager/owned-objects.ts';
import type { OwnedDraft } from '../../../src/manager/owned-object.ts';
import type { OwnedNode } from '../../../src/manager/owned-graph.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';

const settings: OwnedDraft<ConfigMap> = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'settings' },
};
const containers = [{ name: 'main', image: 'busybox' }];
const migration: OwnedDraft<Job> = {
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name: 'migration' },
  spec: { template: { spec: { restartPolicy: 'Never', containers } } },
};
const labels = { app: 'web' };
const web: OwnedDraft<Deployment> = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web' },
  spec: {
    selector: { matchLabels: labels },
    template: { metadata: { labels }, spec: { containers } },
  },
};

/** Not in the order of the dependencies. */
const NODES: readonly OwnedNode[] = [
  { object: web, dependsOn: [settings, migration] },
  {
    object: migration,
    dependsOn: [settings],
    readiness: (job: Job) => {
      const end = finishedCondition(job);
      return end?.type === 'Complete'
        ? { kind: 'ready', reason: 'Complete', message: 'The Job is complete' }
        : { kind: 'reconciling', reason: 'Running', message: 'The Job runs' };
    },
  },
  { object: settings },
];

async function start() {
  const clock = new FakeClock();
  const handler = new ApiServer({ clock }).handler;
  const client = new HttpClient({ handler, server: 'https://test', clock });
  const informers = new InformerSet(client, { clock });
  const owned = new OwnedObjects(CONFIG_MAPS, 'test-controller')
    .add(informers.for(CONFIG_MAPS), { prune: ({ metadata }) => metadata.name.startsWith('old') })
    .add(informers.for(JOBS))
    .add(informers.for(DEPLOYMENTS));
  const owner = await client.create(CONFIG_MAPS, {
    ...settings,
    metadata: { namespace: 'default', name: 'owner' },
  });
  const stop = new AbortController();
  const running = informers.run(stop.signal);
  const context = { client, clock, signal: stop.signal };
  const at = (name: string) => ({ namespace: 'default', name });
  return {
    /** Ensures the graph when the caches are current. */
    ensure: async (nodes = NODES) => {
      await clock.advance(100);
      return owned.ensureGraph(context, owner, nodes);
    },
    deleteGraph: async () => {
      await clock.advance(100);
      return owned.deleteGraph(context, owner, NODES);
    },
    setStatus: (resource: Resource, name: string, status: object) =>
      client.patch<KubernetesObject>(
        resource,
        at(name),
        { type: 'merge', body: { status } },
        { subresource: 'status' },
      ),
    /** Removes an object that is being deleted, as the garbage collector does. */
    collect: (resource: Resource, name: string) =>
      client.patch<KubernetesObject>(resource, at(name), {
        type: 'merge',
        body: { metadata: { finalizers: null } },
      }),
    /** Names of the owned objects that exist; those that are being deleted have a `-`. */
    names: async () => {
      const lists = [CONFIG_MAPS, JOBS, DEPLOYMENTS].map((resource: Resource) =>
        client.list(resource, { namespace: 'default' }),
      );
      return (await Promise.all(lists))
        .flatMap(({ items }) => items)
        .filter(({ metadata }) => metadata.ownerReferences)
        .map(({ metadata }) => `${metadata.deletionTimestamp ? '-' : ''}${metadata.name}`);
    },
    end: async () => {
      stop.abort();
      await clock.advance(1000);
      await running;
    },
  };
}

const COMPLETE = {
  startTime: '2026-01-01T00:00:00Z',
  completionTime: '2026-01-01T00:00:01Z',
  succeeded: 1,
  conditions: ['SuccessCriteriaMet', 'Complete'].map((type) => ({ type, status: 'True' })),
};

const AVAILABLE = {
  observedGeneration: 1,
  replicas: 1,
  updatedReplicas: 1,
  readyReplicas: 1,
  availableReplicas: 1,
  conditions: [
    { type: 'Progressing', status: 'True', reason: 'NewReplicaSetAvailable' },
    { type: 'Available', status: 'True' },
  ],
};

test('an object is written when those on which it depends are ready', async () => {
  const { ensure, names, setStatus, end } = await start();
  const waiting = await ensure();
  assert.deepEqual(await names(), ['settings', 'migration']);
  assert.deepEqual(waiting.readiness, {
    kind: 'reconciling',
    reason: 'ObjectsNotReady',
    message: 'Job "migration": The Job runs; Deployment "web" waits for Job "migration"',
  });
  await setStatus(JOBS, 'migration', COMPLETE);
  const started = await ensure();
  assert.deepEqual(await names(), ['settings', 'migration', 'web']);
  assert.equal(started.readiness.message, 'Deployment "web": Replicas: 0/1');
  await setStatus(DEPLOYMENTS, 'web', AVAILABLE);
  const { readiness, objects } = await ensure();
  assert.equal(readiness.kind, 'ready');
  assert.deepEqual(
    objects.map(({ metadata }) => metadata.name),
    ['settings', 'migration', 'web'],
  );
  await end();
});

test('an object that is written stays as it is while one on which it depends is not ready', async () => {
  const { ensure, names, setStatus, end } = await start();
  const old: OwnedDraft = { ...settings, metadata: { name: 'old' } };
  await ensure([...NODES, { object: old }]);
  await setStatus(JOBS, 'migration', COMPLETE);
  await ensure([...NODES, { object: old }]);
  const blocked = [
    { object: web, dependsOn: [settings] },
    { ...NODES[2]!, readiness: () => STALLED },
  ];
  const { readiness } = await ensure(blocked);
  assert.deepEqual([readiness.kind, readiness.reason], ['stalled', 'Broken']);
  assert.deepEqual(await names(), ['old', 'settings', 'migration', 'web']);
  await ensure();
  assert.deepEqual(await names(), ['settings', 'migration', 'web'], 'pruned when nothing waits');
  await end();
});

const STALLED = { kind: 'stalled', reason: 'Broken', message: 'It is broken' } as const;

test('objects are deleted after those that depend on them are gone', async () => {
  const { ensure, deleteGraph, names, setStatus, collect, end } = await start();
  await ensure();
  await setStatus(JOBS, 'migration', COMPLETE);
  await ensure();
  const seen: string[][] = [];
  const messages: (string | undefined)[] = [];
  for (const resource of [DEPLOYMENTS, JOBS, CONFIG_MAPS]) {
    const readiness = await deleteGraph();
    assert.equal(readiness?.kind, 'reconciling');
    assert.deepEqual(await deleteGraph(), readiness, 'it waits for the garbage collector');
    messages.push(readiness.message);
    seen.push(await names());
    const name = seen.at(-1)?.find((each) => each.startsWith('-')) ?? '';
    await collect(resource, name.slice(1));
  }
  assert.deepEqual(seen, [
    ['settings', 'migration', '-web'],
    ['settings', '-migration'],
    ['-settings'],
  ]);
  const [first = '', , last = ''] = messages;
  assert.match(first, /"web" is .*; Job "migration" waits .*"web"; ConfigMap "settings" waits .*"/);
  assert.match(last, /^ConfigMap "settings" is [^;]*$/);
  assert.equal(await deleteGraph(), undefined);
  await end();
});

test('a graph that cannot be sorted is rejected before a request is sent', async () => {
  const { ensure, names, end } = await start();
  const [first, second] = [settings, migration];
  const circle = [
    { object: web },
    { object: first, dependsOn: [second] },
    { object: second, dependsOn: [first] },
  ];
  await assert.rejects(ensure(circle), /ConfigMap "settings" → Job "migration" → ConfigMap/);
  await assert.rejects(ensure([{ object: web, dependsOn: [first] }]), /which is not in the graph/);
  await assert.rejects(ensure([{ object: web }, { object: { ...web } }]), /twice/);
  assert.deepEqual(await names(), []);
  await end();
});
