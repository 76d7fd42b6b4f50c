import { PODS } from '../../src/api/builtin.ts';
import type { Pod } from '../../src/api/builtin.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import type { Count } from '../../src/api/generated/count.ts';
import { controllerOf, controllerReference } from '../../src/api/metadata.ts';
import type { DeepReadonly, Draft } from '../../src/api/object.ts';
import type { ObjectKey } from '../../src/api/object-key.ts';
import type { Lister } from '../../src/cache/lister.ts';
import type { Client } from '../../src/client/client.ts';
import { Controller } from '../../src/manager/controller.ts';
import type { ControllerKit } from '../../src/manager/run-controllers.ts';
import { done, requeueAfter } from '../../src/workqueue/outcome.ts';
import type { Outcome } from '../../src/workqueue/outcome.ts';
import { countCrd, countDraft, NAME } from './test-cluster.ts';

/** What a sync of a naive controller uses. */
interface NaiveSync {
  readonly count: DeepReadonly<Count>;
  readonly counts: Lister<Count>;
  readonly pods: Lister<Pod>;
  readonly client: Client;
}

/** A controller with a mistake that people make. */
export interface NaiveController {
  readonly mistake: string;
  readonly sync: (sync: NaiveSync) => Promise<Outcome | void>;
}

export const COUNT_AT = { namespace: 'default', name: NAME } as const;

/** Objects and actions with one Count of two Pods, for `explore`. */
export const COUNT_SCENARIO = {
  objects: [countCrd()],
  scenario: {
    'a user creates a Count of 2 Pods': (client: Client) =>
      client.create(COUNTS, countDraft('default', { count: 2 })),
  },
};

/** Returns the function that builds the controller. */
export function naive({ sync }: NaiveController): (kit: ControllerKit) => Controller[] {
  return (kit) => {
    const counts = kit.informers.for(COUNTS);
    const pods = kit.informers.for(PODS);
    const run = async (key: ObjectKey, { client }: { readonly client: Client }) => {
      const count = counts.lister.get(key);
      if (!count) return done();
      return (await sync({ count, counts: counts.lister, pods: pods.lister, client })) ?? done();
    };
    const controller = new Controller(kit, { name: 'naive', kind: 'Count', sync: run });
    return [controller.for(counts).owns(pods, COUNTS)];
  };
}

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
    metadata: { ...name, namespace: 'default', ownerReferences: [controllerReference(count)] },
    spec: { containers: [{ name: 'app', image: count.spec.name }] },
  };
}

/** Writes the number of Pods into the status. */
function writeReplicas({ count, client }: NaiveSync, replicas: number): Promise<unknown> {
  const status = { replicas, observedGeneration: count.metadata.generation };
  const patch = { type: 'merge', body: { status } } as const;
  return client.patch(COUNTS, count.metadata, patch, { subresource: 'status' });
}

async function createMissing(sync: NaiveSync): Promise<number> {
  const { count, client } = sync;
  const owned = ownedPods(sync).length;
  for (let index = owned; index < count.spec.count; index++) {
    await client.create(PODS, podOf(count, { generateName: 'web-' }));
  }
  return owned;
}

export const CREATES_WITHOUT_NAMES: NaiveController = {
  mistake: 'creates objects with generated names from a cache',
  sync: async (sync) => void (await createMissing(sync)),
};

/** Mistakes that are found. */
export const NAIVE_CONTROLLERS: readonly NaiveController[] = [
  CREATES_WITHOUT_NAMES,
  {
    mistake: 'creates without a check, and takes any error for success',
    sync: async ({ count, client }) => {
      for (let index = 0; index < count.spec.count; index++) {
        await client
          .create(PODS, podOf(count, { name: `${count.metadata.name}-${index}` }))
          .catch(() => undefined);
      }
    },
  },
  {
    mistake: 'writes the status from the cache before its own Pods are in it',
    sync: async (sync) => {
      if ((sync.count.status?.replicas ?? -1) >= 0) return;
      await createMissing(sync);
      await writeReplicas(sync, ownedPods(sync).length);
    },
  },
  {
    mistake: 'remembers in the status that it has created, before it has',
    sync: async (sync) => {
      const { count } = sync;
      if (count.status?.replicas === count.spec.count) return;
      await writeReplicas(sync, count.spec.count);
      await createMissing(sync);
    },
  },
  {
    mistake: 'writes the status in every sync',
    sync: async ({ count, client }) => {
      const annotations = { turn: String(Number(count.metadata.annotations?.['turn'] ?? 0) + 1) };
      const patch = { type: 'merge', body: { metadata: { annotations } } } as const;
      await client.patch(COUNTS, count.metadata, patch);
    },
  },
  {
    mistake: 'requeues at once while nothing changes',
    sync: async ({ count, client }) => {
      const body = { metadata: { labels: { at: count.metadata.resourceVersion } } };
      await client.patch(COUNTS, count.metadata, { type: 'merge', body });
      return requeueAfter(1);
    },
  },
];
