import { isApiError } from '../../src/api/api-error.ts';
import { CONFIG_MAPS, PODS } from '../../src/api/builtin.ts';
import type { ConfigMap, Pod } from '../../src/api/builtin.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import type { Count } from '../../src/api/generated/count.ts';
import { controllerOf, controllerReference } from '../../src/api/metadata.ts';
import type { DeepReadonly, Draft } from '../../src/api/object.ts';
import { objectKey } from '../../src/api/object-key.ts';
import type { Client } from '../../src/client/client.ts';
import { done, requeueAfter } from '../../src/workqueue/outcome.ts';
import {
  COUNT_AT,
  createMissing,
  createNamed,
  FINAL_STATE,
  FINALIZER,
  ownedPods,
  patchMetadata,
  podOf,
  rethrow,
  unconnected,
  writeReplicas,
} from './naive-controllers.ts';
import type { NaiveController, NaiveSync } from './naive-controllers.ts';

const patchesCount = (body: object) => (client: Client) =>
  client.patch(COUNTS, COUNT_AT, { type: 'merge', body });

const SCALED = { 'the user scales it to 1': patchesCount({ spec: { count: 1 } }) };
const RENAMED = { 'the user renames it': patchesCount({ spec: { name: 'httpd' } }) };
const DELETED = { 'the user deletes it': (client: Client) => client.delete(COUNTS, COUNT_AT) };

const SOURCE: Draft<ConfigMap> = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { namespace: 'default', name: 'source' },
  data: { number: '1' },
};

const LABELS = { app: 'web' };

/** Returns a Pod of the Count with a label. */
function labelled(count: DeepReadonly<NaiveSync['count']>, name: string): Draft<Pod> {
  const pod = podOf(count, { name });
  return { ...pod, metadata: { ...pod.metadata, labels: LABELS } };
}

async function createLabelled({ count, pods, client }: NaiveSync, from: number): Promise<void> {
  for (let index = from; index < count.spec.count; index++) {
    const name = `${count.metadata.name}-${index}`;
    if (!pods.get(objectKey(count.metadata.namespace, name)))
      await client.create(PODS, labelled(count, name));
  }
}

/** Returns a Pod of the Count without an owner. */
function unowned(count: DeepReadonly<NaiveSync['count']>, name: string): Draft<Pod> {
  const pod = podOf(count, { name });
  const { ownerReferences: _, ...metadata } = pod.metadata;
  return { ...pod, metadata };
}

function nameOfPod({ count }: NaiveSync, index: number): string {
  return `${count.metadata.name}-${index}`;
}

async function createUnowned(sync: NaiveSync): Promise<void> {
  const { count, pods, client } = sync;
  for (let index = 0; index < count.spec.count; index++) {
    const name = nameOfPod(sync, index);
    if (!pods.get(objectKey(count.metadata.namespace, name)))
      await client.create(PODS, unowned(count, name));
  }
}

/** Deletes the Pods without an owner up to a number. */
async function deleteUnowned(sync: NaiveSync, number: number): Promise<void> {
  for (let index = 0; index < number; index++) {
    const at = { namespace: sync.count.metadata.namespace, name: nameOfPod(sync, index) };
    await sync.client.delete(PODS, at).catch((error: unknown) => {
      if (!isApiError(error, 'notFound')) throw error;
    });
  }
}

/** Deletes the owned Pods that are too many. */
async function scaleDown(sync: NaiveSync): Promise<void> {
  for (const pod of ownedPods(sync).slice(sync.count.spec.count))
    await sync.client.delete(PODS, pod.metadata);
}

function patchStatus({ count, client }: NaiveSync, status: object): Promise<unknown> {
  const patch = { type: 'merge', body: { status } } as const;
  return client.patch(COUNTS, count.metadata, patch, { subresource: 'status' });
}

function ready(status: string, time: string = '2026-01-01T00:00:00Z') {
  return { type: 'Ready', status, reason: 'Synced', message: '', lastTransitionTime: time };
}

const isDeleted = ({ count }: NaiveSync) => count.metadata.deletionTimestamp !== undefined;
const hasFinalizer = ({ count }: NaiveSync) => (count.metadata.finalizers ?? []).length > 0;

/** Syncs with a finalizer: creates, or cleans up and removes the finalizer. */
const withFinalizer =
  (cleanUp: (sync: NaiveSync) => Promise<unknown>, finalizers: (sync: NaiveSync) => string[]) =>
  async (sync: NaiveSync) => {
    if (!isDeleted(sync)) {
      if (!hasFinalizer(sync)) await patchMetadata(sync, { finalizers: [FINALIZER] });
      return createUnowned(sync);
    }
    if (!sync.count.metadata.finalizers?.includes(FINALIZER)) return;
    await cleanUp(sync);
    await patchMetadata(sync, { finalizers: finalizers(sync) });
  };

const othersFinalizers = ({ count }: NaiveSync) =>
  (count.metadata.finalizers ?? []).filter((each) => each !== FINALIZER);

function settings(count: DeepReadonly<NaiveSync['count']>, name: string): Draft<ConfigMap> {
  const { namespace = 'default' } = count.metadata;
  const metadata = { name, namespace, ownerReferences: [controllerReference(count)] };
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata };
}

const ignoreTaken = (error: unknown) => {
  if (!isApiError(error, 'alreadyExists')) throw error;
};

const OTHERS = 'only own objects are changed or deleted';
const BOUNDED = 'the writes of each object are bounded';
const NEGLECTED = 'a second object is treated like the first';
const LEFT = 'nothing is left of deleted objects';

/** More mistakes that people make. */
export const MISTAKES: readonly NaiveController[] = [
  {
    mistake: 'deletes Pods by a label',
    rule: BOUNDED,
    create: () => async (sync) => {
      const { count, pods, client } = sync;
      await createLabelled(sync, 0);
      const found = pods
        .list()
        .filter(
          ({ metadata: { namespace, labels } }) =>
            namespace === count.metadata.namespace && labels?.['app'] === 'web',
        );
      for (const pod of found.slice(count.spec.count)) await client.delete(PODS, pod.metadata);
    },
    later: SCALED,
  },
  {
    mistake: 'counts Pods by a label, also those of others',
    rule: NEGLECTED,
    create: () => async (sync) => {
      const present = sync.pods.list().filter(({ metadata }) => metadata.labels?.['app'] === 'web');
      await createLabelled(sync, present.length);
    },
  },
  {
    mistake: 'finds its Pods by the name of their owner, in all namespaces',
    rule: BOUNDED,
    create: () => async (sync) => {
      const { count, pods, client } = sync;
      await createNamed(sync, rethrow);
      const owned = pods.list().filter((pod) => controllerOf(pod)?.name === count.metadata.name);
      for (const pod of owned.slice(count.spec.count)) await client.delete(PODS, pod.metadata);
    },
  },
  {
    mistake: 'creates all Pods in one namespace',
    rule: 'a second object is treated like the first',
    create: () => async (sync) => {
      const { count, pods, client } = sync;
      for (let index = 0; index < count.spec.count; index++) {
        const name = nameOfPod(sync, index);
        if (pods.get(objectKey('default', name))) continue;
        const pod = podOf(count, { name });
        await client.create(PODS, { ...pod, metadata: { ...pod.metadata, namespace: 'default' } });
      }
      if (count.status?.replicas !== count.spec.count) await writeReplicas(sync, count.spec.count);
    },
  },
  {
    mistake: 'uses one name for the ConfigMaps of all Counts',
    rule: 'a second object is treated like the first',
    create: () => async (sync) => {
      await sync.client.create(CONFIG_MAPS, settings(sync.count, 'settings')).catch(ignoreTaken);
      if (sync.count.status?.replicas !== 1) await writeReplicas(sync, 1);
    },
  },
  {
    mistake: 'reports Pods of others with the expected names as its own',
    rule: 'the status shows a name collision',
    create: () => async (sync) => {
      await createNamed(sync, async (error) => ignoreTaken(error));
      const { count } = sync;
      if (count.status?.replicas !== count.spec.count) await writeReplicas(sync, count.spec.count);
    },
  },
  {
    mistake: 'sets no owner, and does not clean up',
    rule: LEFT,
    create: () => createUnowned,
  },
  {
    mistake: 'does not remove its finalizer',
    syncsDeleted: true,
    rule: LEFT,
    create: () => async (sync) => {
      if (isDeleted(sync)) return;
      if (!hasFinalizer(sync)) await patchMetadata(sync, { finalizers: [FINALIZER] });
      await createNamed(sync, rethrow);
    },
  },
  {
    mistake: 'adds its finalizer after it has created',
    syncsDeleted: true,
    rule: OTHERS,
    create: () => async (sync) => {
      if (isDeleted(sync)) {
        await deleteUnowned(sync, 2);
        return void (await patchMetadata(sync, { finalizers: othersFinalizers(sync) }));
      }
      await createUnowned(sync);
      if (!hasFinalizer(sync)) await patchMetadata(sync, { finalizers: [FINALIZER] });
    },
    later: DELETED,
  },
  {
    mistake: 'creates for an object that is being deleted',
    syncsDeleted: true,
    rule: 'nothing is created for an object that is being deleted',
    create: () => (sync) => createNamed(sync, rethrow),
  },
  {
    mistake: 'removes all finalizers',
    syncsDeleted: true,
    rule: 'finalizers of others are kept',
    create: () =>
      withFinalizer(
        (sync) => deleteUnowned(sync, 2),
        () => [],
      ),
  },
  {
    mistake: 'forgets a Pod when it cleans up',
    syncsDeleted: true,
    rule: LEFT,
    create: () => withFinalizer((sync) => deleteUnowned(sync, 1), othersFinalizers),
  },
  {
    mistake: 'removes its finalizer although a deletion has failed',
    syncsDeleted: true,
    rule: OTHERS,
    create: () =>
      withFinalizer((sync) => deleteUnowned(sync, 2).catch(() => undefined), othersFinalizers),
    later: DELETED,
  },
  {
    mistake: 'forgets the former ConfigMap after a renaming',
    rule: FINAL_STATE,
    create:
      () =>
      async ({ count, client }) => {
        await client.create(CONFIG_MAPS, settings(count, count.spec.name)).catch(ignoreTaken);
      },
    later: RENAMED,
  },
  {
    mistake: 'writes the time into the status in each sync',
    rule: 'nothing is written in steady state',
    create: (kit) => async (sync) => {
      await createNamed(sync, rethrow);
      const time = new Date(kit.clock.now()).toISOString();
      await kit.clock.sleep(1000);
      await patchStatus(sync, { conditions: [ready('False', time)] });
    },
  },
  {
    mistake: 'is ready as soon as it has created',
    rule: 'an object is ready after its owned objects',
    create: () => async (sync) => {
      await createNamed(sync, rethrow);
      if (!sync.count.status) await patchStatus(sync, { conditions: [ready('True')] });
    },
  },
  {
    mistake: 'reports desired Pods as ready ones',
    rule: 'an object is ready after its owned objects',
    create: () => async (sync) => {
      const { count } = sync;
      await createNamed(sync, rethrow);
      if (count.status?.readyReplicas !== count.spec.count)
        await patchStatus(sync, { readyReplicas: count.spec.count });
    },
  },
  {
    mistake: 'does not update observedGeneration',
    rule: 'observedGeneration is current',
    create: () => async (sync) => {
      await createNamed(sync, rethrow);
      await scaleDown(sync);
      if (!sync.count.status) await writeReplicas(sync, sync.count.spec.count);
    },
    later: SCALED,
  },
  {
    mistake: 'adds a condition in each sync',
    rule: 'syncs succeed in steady state',
    create: () => async (sync) => {
      const { conditions = [] } = sync.count.status ?? {};
      await patchStatus(sync, {
        conditions: [...conditions, { ...ready('False'), type: `Synced${conditions.length}` }],
      });
    },
  },
  {
    mistake: 'replaces all metadata to set a label',
    rule: 'annotations of other clients are kept',
    create: () => async (sync) => {
      if (sync.count.metadata.labels?.['managed'] === 'true') return;
      const count = sync.count as Count;
      const { annotations: _, ...metadata } = count.metadata;
      const labels = { managed: 'true' };
      await sync.client.update(COUNTS, { ...count, metadata: { ...metadata, labels } });
    },
  },
  {
    mistake: 'overwrites the spec with that of its cache',
    rule: BOUNDED,
    create: () => async (sync) => {
      const { count, client } = sync;
      await createNamed(sync, rethrow);
      await scaleDown(sync);
      const managed = String(count.spec.count);
      if (count.metadata.labels?.['managed'] === managed) return;
      const { metadata } = await client.get(COUNTS, count.metadata);
      const labels = { managed };
      await client.update(COUNTS, { ...(count as Count), metadata: { ...metadata, labels } });
    },
    later: SCALED,
  },
  {
    mistake: 'does not watch its Pods',
    rule: FINAL_STATE,
    create: () => (sync) => createNamed(sync, rethrow),
    connect: (parts) => unconnected(parts).for(parts.counts),
  },
  {
    mistake: 'ignores deletions of its Pods',
    rule: FINAL_STATE,
    create: () => (sync) => createNamed(sync, rethrow),
    connect: (parts) =>
      unconnected(parts)
        .for(parts.counts)
        .owns(parts.pods, COUNTS, { predicates: [{ delete: () => false }] }),
  },
  {
    mistake: 'ignores updates of its object',
    rule: FINAL_STATE,
    create: () => async (sync) => {
      await createNamed(sync, rethrow);
      await scaleDown(sync);
    },
    connect: (parts) =>
      unconnected(parts)
        .for(parts.counts, { predicates: [{ update: () => false }] })
        .owns(parts.pods, COUNTS),
    later: SCALED,
  },
  {
    mistake: 'does not watch a ConfigMap that it reads',
    rule: FINAL_STATE,
    options: {
      objects: [SOURCE],
    },
    create: (kit) => {
      const maps = kit.informers.for(CONFIG_MAPS);
      return async (sync) => {
        const number = Number(maps.lister.get(objectKey('default', 'source'))?.data?.['number']);
        if (sync.count.status?.replicas !== number) await writeReplicas(sync, number);
      };
    },
    later: {
      'the user changes the ConfigMap': (client) =>
        client.patch(
          CONFIG_MAPS,
          { namespace: 'default', name: 'source' },
          { type: 'merge', body: { data: { number: '2' } } },
        ),
    },
  },
  {
    mistake: 'creates the difference to the number that it remembers',
    rule: NEGLECTED,
    create: () => {
      let known = 0;
      return async (sync) => {
        for (; known < sync.count.spec.count; known++)
          await sync.client.create(PODS, podOf(sync.count, { generateName: 'web-' }));
      };
    },
  },
  {
    mistake: 'remembers by name what it has created',
    rule: NEGLECTED,
    create: () => {
      const known = new Set<string>();
      return async (sync) => {
        if (known.has(sync.count.metadata.name)) return;
        await createNamed(sync, rethrow);
        known.add(sync.count.metadata.name);
      };
    },
    later: {
      ...DELETED,
      'the garbage collector deletes its Pods': async (client) => {
        for (const pod of (await client.list(PODS, { namespace: 'default' })).items)
          await client.delete(PODS, pod.metadata, { gracePeriodSeconds: 0 });
      },
      'the user creates it again': (client) =>
        client.create(COUNTS, {
          apiVersion: 'demo.mark8s.io/v1',
          kind: 'Count',
          metadata: COUNT_AT,
          spec: { name: 'nginx', count: 2 },
        }),
    },
  },
  {
    mistake: 'gives up after two retries',
    rule: FINAL_STATE,
    create: () => (sync) => createNamed(sync, rethrow),
    connect: (parts) =>
      unconnected(parts, { maxRetries: 2 }).for(parts.counts).owns(parts.pods, COUNTS),
  },
  {
    mistake: 'gives up after ten retries in a second',
    rule: FINAL_STATE,
    create: () => {
      let failures = 0;
      return async (sync) => {
        try {
          await createNamed(sync, rethrow);
        } catch {
          return failures++ < 10 ? requeueAfter(100) : done();
        }
        return done();
      };
    },
  },
  {
    mistake: 'retries at once',
    rule: 'retries have a backoff',
    create: () => async (sync) => {
      try {
        await createNamed(sync, rethrow);
      } catch {
        return requeueAfter(200);
      }
      return done();
    },
  },
  {
    mistake: 'gives up after a quota has refused an object',
    rule: FINAL_STATE,
    create: () => (sync) =>
      createNamed(sync, async (error) => {
        if (!isApiError(error, 'forbidden')) throw error;
      }),
  },
  {
    mistake: 'changes a cached object',
    rule: 'syncs succeed in steady state',
    create: () => async (sync) => {
      (sync.count as NaiveSync['count'] & { spec: { count: number } }).spec.count = 1;
      await createMissing(sync);
    },
  },
  {
    mistake: 'creates invalid objects',
    rule: 'syncs succeed in steady state',
    create:
      () =>
      async ({ count, client }) => {
        await client.create(PODS, podOf(count, { name: 'Not_A_Name' }));
      },
  },
  {
    mistake: 'records a generated name after it has created',
    rule: 'nothing is created twice',
    create: () => async (sync) => {
      if (sync.count.metadata.annotations?.['pod']) return;
      const pod = await sync.client.create(PODS, podOf(sync.count, { generateName: 'web-' }));
      await patchMetadata(sync, { annotations: { pod: pod.metadata.name } });
    },
  },
];
