import { PODS } from '../../src/api/builtin.ts';
import type { Pod } from '../../src/api/builtin.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import type { Count } from '../../src/api/generated/count.ts';
import { isApiError } from '../../src/api/api-error.ts';
import { controllerOf, controllerReference } from '../../src/api/metadata.ts';
import type { DeepReadonly, Draft } from '../../src/api/object.ts';
import { objectKey } from '../../src/api/object-key.ts';
import type { ObjectKey } from '../../src/api/object-key.ts';
import type { Lister } from '../../src/cache/lister.ts';
import type { SharedInformer } from '../../src/cache/shared-informer.ts';
import type { Client } from '../../src/client/client.ts';
import { Controller } from '../../src/manager/controller.ts';
import type { ControllerKit } from '../../src/manager/controller-kit.ts';
import type { ControllerOptions, SyncContext } from '../../src/manager/controller-options.ts';
import type { ExploreOptions } from '../../src/explore/explore.ts';
import { done, requeueAfter } from '../../src/workqueue/outcome.ts';
import type { Outcome } from '../../src/workqueue/outcome.ts';
import { countCrd, countDraft, NAME } from './test-cluster.ts';

/** What a sync of a naive controller uses. */
export interface NaiveSync {
  readonly count: DeepReadonly<Count>;
  readonly pods: Lister<Pod>;
  readonly client: Client;
}

/** A controller with a mistake that people make. */
export interface NaiveController {
  readonly mistake: string;
  /** The rule that it violates. */
  readonly rule: string;
  /** Returns the handler of one process. */
  readonly create: (kit: ControllerKit) => (sync: NaiveSync) => Promise<Outcome | void>;
  /**
   * What happens after the creation of a Count of 2 Pods.
   * @default nothing
   */
  readonly later?: ExploreOptions['scenario'];
  /**
   * Whether it also syncs objects that are being deleted.
   * @default false
   */
  readonly syncsDeleted?: boolean;
  /** Other options of `explore`. */
  readonly options?: Pick<ExploreOptions, 'replicas' | 'objects'>;
  /**
   * Returns the controller.
   * @default it syncs Counts, and watches Counts and owned Pods
   */
  readonly connect?: (parts: NaiveParts) => Controller;
}

/** What a controller is made of. */
export interface NaiveParts {
  readonly kit: ControllerKit;
  readonly sync: (key: ObjectKey, context: SyncContext) => Promise<Outcome>;
  readonly counts: SharedInformer<Count>;
  readonly pods: SharedInformer<Pod>;
}

/** Returns a controller of Counts without event handlers. */
export function unconnected(
  { kit, sync }: NaiveParts,
  options: Partial<ControllerOptions> = {},
): Controller {
  return new Controller(kit, { name: 'naive', kind: 'Count', sync, ...options });
}

export const COUNT_AT = { namespace: 'default', name: NAME } as const;

/** Returns the options of `explore` for one Count of 2 Pods and a naive controller. */
export function naiveOptions({
  create,
  later,
  syncsDeleted = false,
  options,
  connect = usual,
}: NaiveController): ExploreOptions {
  return {
    ...COUNT_SCENARIO,
    ...options,
    objects: [countCrd(), ...(options?.objects ?? [])],
    scenario: { ...COUNT_SCENARIO.scenario, ...later },
    controllers: (kit) => {
      const counts = kit.informers.for(COUNTS);
      const pods = kit.informers.for(PODS);
      const handle = create(kit);
      const sync = async (key: ObjectKey, { client }: SyncContext) => {
        const count = counts.lister.get(key);
        if (!count || (count.metadata.deletionTimestamp !== undefined && !syncsDeleted))
          return done();
        return (await handle({ count, pods: pods.lister, client })) ?? done();
      };
      return [connect({ kit, sync, counts, pods })];
    },
  };
}

const usual = (parts: NaiveParts) => unconnected(parts).for(parts.counts).owns(parts.pods, COUNTS);

/** One Count of two Pods. */
export const COUNT_SCENARIO: Pick<ExploreOptions, 'objects' | 'scenario'> = {
  objects: [countCrd()],
  scenario: {
    'a user creates a Count of 2 Pods': (client: Client) =>
      client.create(COUNTS, countDraft('default', { count: 2 })),
  },
};

/** Returns the Pods that a Count owns in the cache. */
export function ownedPods({ count, pods }: NaiveSync): readonly DeepReadonly<Pod>[] {
  return pods.list().filter((pod) => controllerOf(pod)?.uid === count.metadata.uid);
}

/** Returns a Pod of the Count. */
export function podOf(
  count: DeepReadonly<Count>,
  name: { readonly name: string } | { readonly generateName: string },
): Draft<Pod> {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...name,
      namespace: count.metadata.namespace ?? 'default',
      ownerReferences: [controllerReference(count)],
    },
    spec: { containers: [{ name: 'app', image: count.spec.name }] },
  };
}

/** Writes the number of Pods into the status. */
export function writeReplicas({ count, client }: NaiveSync, replicas: number): Promise<unknown> {
  const status = { replicas, observedGeneration: count.metadata.generation };
  const patch = { type: 'merge', body: { status } } as const;
  return client.patch(COUNTS, count.metadata, patch, { subresource: 'status' });
}

/** Creates Pods with generated names until the cache and this sync have the desired number. */
export async function createMissing(sync: NaiveSync): Promise<void> {
  const { count, client } = sync;
  for (let index = ownedPods(sync).length; index < count.spec.count; index++) {
    await client.create(PODS, podOf(count, { generateName: 'web-' }));
  }
}

/** Creates the Pods `NAME-0` and so on that are not in the cache. */
export async function createNamed(
  { count, pods, client }: NaiveSync,
  onError: (error: unknown, name: string) => Promise<unknown>,
): Promise<void> {
  for (let index = 0; index < count.spec.count; index++) {
    const name = `${count.metadata.name}-${index}`;
    if (pods.get(objectKey(count.metadata.namespace, name))) continue;
    await client
      .create(PODS, podOf(count, { name }))
      .catch((error: unknown) => onError(error, name));
  }
}

export const FINALIZER = 'example.com/pods';

export function patchMetadata({ count, client }: NaiveSync, metadata: object): Promise<unknown> {
  return client.patch(COUNTS, count.metadata, { type: 'merge', body: { metadata } });
}

export const rethrow = (cause: unknown) => Promise.reject(cause);

export const FINAL_STATE = 'the final state is that of a run without faults';

export const CREATES_FROM_CACHE: NaiveController = {
  mistake: 'creates objects with generated names from a cache',
  rule: 'nothing is created twice',
  create: () => createMissing,
};

/** Mistakes that people make. */
export const NAIVE_CONTROLLERS: readonly NaiveController[] = [
  CREATES_FROM_CACHE,
  {
    mistake: 'takes any error of a create for success',
    rule: FINAL_STATE,
    create: () => (sync) => createNamed(sync, () => Promise.resolve()),
  },
  {
    mistake: 'gives up after an invalid request',
    rule: FINAL_STATE,
    create: () => (sync) =>
      createNamed(sync, async (error) => {
        if (!isApiError(error, 'invalid')) throw error;
      }),
  },
  {
    mistake: 'writes the number of Pods that its cache happens to have, once',
    rule: FINAL_STATE,
    create: () => async (sync) => {
      await createNamed(sync, rethrow);
      if (!sync.count.status) await writeReplicas(sync, ownedPods(sync).length);
    },
  },
  {
    mistake: 'records in the status that it has created, before it creates',
    rule: 'the status shows a name collision',
    create: () => async (sync) => {
      if (sync.count.status?.replicas === sync.count.spec.count) return;
      await writeReplicas(sync, sync.count.spec.count);
      await createNamed(sync, rethrow);
    },
  },
  {
    mistake: 'remembers in memory that it has created, before it has',
    rule: FINAL_STATE,
    create: () => {
      const created = new Set<string>();
      return async (sync) => {
        if (created.has(sync.count.metadata.uid)) return;
        created.add(sync.count.metadata.uid);
        await createNamed(sync, rethrow);
      };
    },
  },
  {
    mistake: 'names objects by a counter in memory',
    rule: FINAL_STATE,
    create: () => {
      let next = 0;
      return async (sync) => {
        for (let index = ownedPods(sync).length; index < sync.count.spec.count; index++) {
          await sync.client
            .create(PODS, podOf(sync.count, { name: `web-${next++}` }))
            .catch((error: unknown) => {
              if (!isApiError(error, 'alreadyExists')) throw error;
            });
        }
      };
    },
  },
  {
    mistake: 'does not look at a Count again after its first status',
    rule: 'observedGeneration is current',
    create: () => async (sync) => {
      if (sync.count.status) return;
      await createNamed(sync, rethrow);
      await writeReplicas(sync, sync.count.spec.count);
    },
    later: {
      'the user scales it to 1': (client) =>
        client.patch(COUNTS, COUNT_AT, { type: 'merge', body: { spec: { count: 1 } } }),
    },
  },
  {
    mistake: 'removes the finalizer before it has cleaned up',
    syncsDeleted: true,
    rule: 'finalizers of others are kept',
    create: () => async (sync) => {
      const { count, client } = sync;
      const { deletionTimestamp, finalizers = [] } = count.metadata;
      if (deletionTimestamp === undefined) {
        if (finalizers.length === 0) await patchMetadata(sync, { finalizers: [FINALIZER] });
        return createNamed(sync, rethrow);
      }
      const owned = ownedPods(sync);
      await patchMetadata(sync, { finalizers: [] });
      for (const pod of owned) await client.delete(PODS, pod.metadata);
    },
    later: { 'the user deletes it': (client) => client.delete(COUNTS, COUNT_AT) },
  },
  {
    mistake: 'adopts objects by their names',
    rule: 'only own objects are changed or deleted',
    create: () => (sync) =>
      createNamed(sync, async (error, name) => {
        if (!isApiError(error, 'alreadyExists')) throw error;
        const ownerReferences = [controllerReference(sync.count)];
        const body = { metadata: { ownerReferences } };
        await sync.client.patch(
          PODS,
          { namespace: sync.count.metadata.namespace, name },
          { type: 'merge', body },
        );
      }),
  },
  {
    mistake: 'replaces Pods whose image is not the one that it asked for',
    rule: 'the writes of each object are bounded',
    create: () => async (sync) => {
      for (const pod of ownedPods(sync)) {
        if (pod.spec?.containers[0]?.image === sync.count.spec.name) continue;
        await sync.client.delete(PODS, pod.metadata);
      }
      await createNamed(sync, rethrow);
    },
  },
  {
    mistake: 'ignores a conflict when it writes the status',
    rule: 'the status shows a name collision',
    create: () => async (sync) => {
      await createNamed(sync, rethrow);
      if (sync.count.status?.replicas === sync.count.spec.count) return;
      await writeReplicas(sync, sync.count.spec.count).catch((error: unknown) => {
        if (!isApiError(error, 'conflict')) throw error;
      });
    },
  },
  {
    mistake: 'requeues without a backoff after a name collision',
    rule: 'retries have a backoff',
    create: () => async (sync) => {
      let isTaken = false;
      await createNamed(sync, async () => void (isTaken = true));
      return isTaken ? requeueAfter(1) : done();
    },
  },
  {
    mistake: 'changes the object in every sync',
    rule: 'nothing is written in steady state',
    create: () => async (sync) => {
      const turn = Number(sync.count.metadata.annotations?.['turn'] ?? 0) + 1;
      await patchMetadata(sync, { annotations: { turn: String(turn) } });
    },
  },
];
