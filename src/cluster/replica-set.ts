import { isApiError } from '../api/api-error.ts';
import { PODS, REPLICA_SETS } from '../api/builtin.ts';
import type { Pod, ReplicaSet } from '../api/builtin.ts';
import type { DeepReadonly, Draft } from '../api/object.ts';
import { controllerReference } from '../api/metadata.ts';
import { isActive, isReady, readySince } from '../api/workloads.ts';
import { Controller } from '../manager/controller.ts';
import type { SyncContext } from '../manager/controller-options.ts';
import { ownerIndexers, OWNER_INDEX } from '../manager/enqueue.ts';
import { StatusWriter } from '../manager/status-writer.ts';
import { done, requeueAfter } from '../workqueue/outcome.ts';
import type { ClusterDeps } from './resource-monitors.ts';

const MANAGER = 'replicaset-controller';

/** Maximum number of Pods that one sync creates or deletes, as in kube-controller-manager. */
const BURST_REPLICAS = 500;

/**
 * ReplicaSet controller: maintains `spec.replicas` Pods. Counts only Pods that the ReplicaSet controls;
 * orphans are not adopted.
 */
export function replicaSets(deps: ClusterDeps): Controller {
  const sets = deps.informers.for(REPLICA_SETS);
  const pods = deps.informers.for(PODS);
  pods.addIndexers(ownerIndexers);
  const statuses = new StatusWriter(REPLICA_SETS, MANAGER);
  return new Controller(deps, {
    name: 'replicaset',
    kind: REPLICA_SETS.kind,
    concurrency: 10,
    sync: async (key, context) => {
      const set = sets.lister.get(key);
      if (!set) return done();
      const owned = pods.lister.byIndex(OWNER_INDEX, set.metadata.uid);
      const active = owned.filter(isActive);
      if (set.metadata.deletionTimestamp === undefined) await scale(set, active, context);
      const { available, nextMs } = availability(
        active,
        set.spec?.minReadySeconds ?? 0,
        deps.clock.now(),
      );
      const status = statusOf(set, active, available);
      if (statuses.differs(set, status)) await statuses.write(context, set, status);
      return nextMs === undefined ? done() : requeueAfter(nextMs);
    },
  })
    .for(sets)
    .owns(pods, REPLICA_SETS);
}

async function scale(
  set: DeepReadonly<ReplicaSet>,
  active: readonly DeepReadonly<Pod>[],
  { client, signal }: SyncContext,
): Promise<void> {
  const missing = (set.spec?.replicas ?? 1) - active.length;
  if (missing > 0) {
    const draft = buildPod(set);
    const creations = Array.from({ length: Math.min(missing, BURST_REPLICAS) }, () =>
      client.create(PODS, draft, { fieldManager: MANAGER, signal }),
    );
    await allOf(creations);
  } else if (missing < 0) {
    const surplus = active
      .toSorted(byDeletionPriority)
      .slice(0, Math.min(-missing, BURST_REPLICAS));
    await allOf(
      surplus.map(async ({ metadata }) => {
        try {
          await client.delete(PODS, metadata, { uid: metadata.uid, signal });
        } catch (error) {
          if (!isApiError(error, 'notFound', 'conflict')) throw error;
        }
      }),
    );
  }
}

function buildPod(set: DeepReadonly<ReplicaSet>): Draft<Pod> {
  const { name, namespace = '' } = set.metadata;
  const template = structuredClone(set.spec?.template) as
    { metadata?: Pod['metadata']; spec?: Pod['spec'] } | undefined;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...template?.metadata,
      generateName: `${name}-`,
      namespace,
      ownerReferences: [controllerReference(set)],
    },
    ...(template?.spec ? { spec: template.spec } : {}),
  };
}

function statusOf(
  set: DeepReadonly<ReplicaSet>,
  active: readonly DeepReadonly<Pod>[],
  available: number,
): NonNullable<ReplicaSet['status']> {
  const labels = Object.entries(set.spec?.template?.metadata?.labels ?? {});
  const isFullyLabeled = ({ metadata }: DeepReadonly<Pod>) =>
    labels.every(([label, value]) => metadata.labels?.[label] === value);
  return {
    replicas: active.length,
    observedGeneration: set.metadata.generation ?? 0,
    ...nonZero({
      fullyLabeledReplicas: active.filter(isFullyLabeled).length,
      readyReplicas: active.filter(isReady).length,
      availableReplicas: available,
    }),
  };
}

/** Waits for all calls, then rejects with the first failure. */
async function allOf(calls: readonly Promise<unknown>[]): Promise<void> {
  const failed = (await Promise.allSettled(calls)).find(({ status }) => status === 'rejected');
  if (failed?.status === 'rejected') throw failed.reason;
}

/**
 * Returns the number of Pods that have been ready for `minReadySeconds`, and the milliseconds until the
 * next Pod becomes available.
 */
export function availability(
  pods: readonly DeepReadonly<Pod>[],
  minReadySeconds: number,
  nowMs: number,
): { readonly available: number; readonly nextMs: number | undefined } {
  const waitsMs = pods
    .map(readySince)
    .filter((sinceMs) => sinceMs !== undefined)
    .map((sinceMs) => (minReadySeconds === 0 ? 0 : sinceMs + minReadySeconds * 1000 - nowMs));
  const pending = waitsMs.filter((ms) => ms > 0);
  return {
    available: waitsMs.length - pending.length,
    nextMs: pending.length > 0 ? pending.reduce((next, ms) => Math.min(next, ms)) : undefined,
  };
}

/** Compares Pods for deletion: first those without a node, not running, not ready, then the newest. */
export function byDeletionPriority(a: DeepReadonly<Pod>, b: DeepReadonly<Pod>): number {
  const rank = (pod: DeepReadonly<Pod>) =>
    (pod.spec?.nodeName ? 4 : 0) +
    (pod.status?.phase === 'Running' ? 2 : 0) +
    (isReady(pod) ? 1 : 0);
  return rank(a) - rank(b) || byAge(b, a);
}

function byAge(a: DeepReadonly<Pod>, b: DeepReadonly<Pod>): number {
  const [left, right] = [a.metadata, b.metadata];
  if (left.creationTimestamp !== right.creationTimestamp) {
    return left.creationTimestamp < right.creationTimestamp ? -1 : 1;
  }
  return left.name < right.name ? -1 : 1;
}

/** Removes counts that are 0, which the API server omits. */
export function nonZero<T extends string>(
  all: Readonly<Record<T, number>>,
): Partial<Record<T, number>> {
  return Object.fromEntries(
    Object.entries<number>(all).filter(([, count]) => count !== 0),
  ) as Partial<Record<T, number>>;
}
