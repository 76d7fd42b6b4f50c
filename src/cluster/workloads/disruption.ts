import { isApiError } from '../../api/api-error.ts';
import { DEPLOYMENTS, POD_DISRUPTION_BUDGETS, PODS, REPLICA_SETS } from '../../api/builtin.ts';
import type { Pod, PodDisruptionBudget, Scale } from '../../api/builtin.ts';
import { setCondition } from '../../api/conditions.ts';
import type { Condition } from '../../api/conditions.ts';
import { requirementsOf, selects } from '../../api/label-selector.ts';
import { controllerOf } from '../../api/metadata.ts';
import { keyOf, objectKey } from '../../api/object-key.ts';
import type { DeepReadonly, OwnerReference } from '../../api/object.ts';
import { isPodReady } from '../../api/workloads.ts';
import { apiVersionOf, groupResourceOf, objectPath } from '../../api/resource.ts';
import { discover } from '../../client/discovery.ts';
import { Controller } from '../../manager/controller.ts';
import type { SyncContext } from '../../manager/controller-options.ts';
import { StatusWriter } from '../../manager/status-writer.ts';
import { messageOf } from '../../util/values.ts';
import { done, requeueAfter } from '../../workqueue/outcome.ts';
import { FIELD_MANAGER } from '../support/field-manager.ts';
import type { ClusterDeps } from '../support/resource-monitors.ts';
import { amountOf } from './rolling-update.ts';

/** Time after which an evicted Pod that still exists counts as available again, in milliseconds. */
const DELETION_TIMEOUT_MS = 120_000;

type Status = NonNullable<PodDisruptionBudget['status']>;

/**
 * Disruption controller: computes the status of PodDisruptionBudgets, which the eviction subresource
 * reads.
 */
export function disruptionBudgets(deps: ClusterDeps): Controller {
  const budgets = deps.informers.for(POD_DISRUPTION_BUDGETS);
  const pods = deps.informers.for(PODS);
  const statuses = new StatusWriter(POD_DISRUPTION_BUDGETS, FIELD_MANAGER);
  const recorder = deps.events.recorder('controllermanager');
  return new Controller(deps, {
    name: 'disruption',
    kind: POD_DISRUPTION_BUDGETS.kind,
    sync: async (key, context) => {
      const budget = budgets.lister.get(key);
      if (!budget) return done();
      const { namespace } = budget.metadata;
      const selector = requirementsOf(budget.spec?.selector);
      const selected = selector ? pods.lister.list({ namespace, selector }) : [];
      if (selected.length === 0) recorder.normal(budget, 'NoPods', 'No matching pods found');
      const nowMs = deps.clock.now();
      let status: Status;
      let failure: unknown;
      try {
        const expected = await expectedPods(deps, budget, selected, context);
        if (expected.unmanaged > 0) {
          const message = `Pods selected by this PodDisruptionBudget (selector: ${JSON.stringify(budget.spec?.selector)}) were found to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to an integer value.`;
          recorder.warning(budget, 'UnmanagedPods', message);
        }
        status = statusOf(budget, selected, expected, nowMs);
      } catch (error) {
        failure = error;
        const message = `Failed to calculate the number of expected pods: ${messageOf(error)}`;
        recorder.warning(budget, 'CalculateExpectedPodCountFailed', message);
        status = failedStatus(budget, messageOf(error), nowMs);
      }
      if (statuses.differs(budget, status)) await statuses.write(context, budget, status);
      if (failure !== undefined) throw failure;
      const evictedMs = Object.values(status.disruptedPods ?? {}).map((time) => Date.parse(time));
      if (evictedMs.length === 0) return done();
      return requeueAfter(
        Math.max(
          0,
          evictedMs.reduce((first, ms) => Math.min(first, ms)) + DELETION_TIMEOUT_MS - nowMs,
        ) + 1000,
      );
    },
  })
    .for(budgets)
    .watches(pods, ({ metadata: { namespace, labels } }) =>
      budgets.lister
        .list({ namespace })
        .filter(({ spec }) => selects(spec?.selector, labels))
        .map(keyOf),
    )
    .watches(deps.informers.for(REPLICA_SETS), () => undefined)
    .watches(deps.informers.for(DEPLOYMENTS), () => undefined);
}

interface Expected {
  readonly pods: number;
  readonly healthy: number;
  /** Number of Pods without a controller, which a percentage cannot refer to. */
  readonly unmanaged: number;
}

/** @throws {Error} if the controller of a Pod has no known number of replicas */
async function expectedPods(
  deps: ClusterDeps,
  { spec }: DeepReadonly<PodDisruptionBudget>,
  pods: readonly DeepReadonly<Pod>[],
  context: SyncContext,
): Promise<Expected> {
  const { minAvailable, maxUnavailable } = spec ?? {};
  if (maxUnavailable === undefined && typeof minAvailable !== 'string') {
    return {
      pods: minAvailable === undefined ? 0 : pods.length,
      healthy: minAvailable ?? 0,
      unmanaged: 0,
    };
  }
  const scales = new Map<string, number>();
  let unmanaged = 0;
  for (const pod of pods) {
    const owner = controllerOf(pod);
    if (!owner) unmanaged++;
    else if (!scales.has(owner.uid)) {
      const [uid, replicas] = await scaleOf(deps, pod, owner, context);
      scales.set(uid, replicas);
    }
  }
  const total = [...scales.values()].reduce((sum, replicas) => sum + replicas, 0);
  const healthy =
    maxUnavailable === undefined
      ? amountOf(minAvailable, total, 'up')
      : Math.max(0, total - amountOf(maxUnavailable, total, 'up'));
  return { pods: total, healthy, unmanaged };
}

/** Returns the uid and the replicas of the controller of a Pod; of the Deployment, if it has one. */
async function scaleOf(
  { informers }: ClusterDeps,
  { metadata }: DeepReadonly<Pod>,
  owner: DeepReadonly<OwnerReference>,
  { client, signal }: SyncContext,
): Promise<readonly [uid: string, replicas: number]> {
  const { namespace } = metadata;
  const missing = () => new Error(`found no controllers for pod "${metadata.name}"`);
  if (owner.kind === REPLICA_SETS.kind && owner.apiVersion === apiVersionOf(REPLICA_SETS)) {
    const set = informers.for(REPLICA_SETS).lister.get(objectKey(namespace, owner.name));
    if (set?.metadata.uid !== owner.uid) throw missing();
    const parent = controllerOf(set);
    const deployment =
      parent && informers.for(DEPLOYMENTS).lister.get(objectKey(namespace, parent.name));
    return deployment?.metadata.uid === parent?.uid && deployment
      ? [deployment.metadata.uid, deployment.spec?.replicas ?? 1]
      : [owner.uid, set.spec?.replicas ?? 1];
  }
  const { resources } = await discover(client, signal);
  const resource = resources.find(
    (each) => each.kind === owner.kind && apiVersionOf(each) === owner.apiVersion,
  );
  if (!resource) throw missing();
  try {
    const path = objectPath(resource, { namespace, name: owner.name }, 'scale');
    const scale = (await client.raw({ method: 'GET', path, signal })) as Scale;
    if (scale.metadata.uid !== owner.uid) throw missing();
    return [owner.uid, scale.spec?.replicas ?? 0];
  } catch (error) {
    if (!isApiError(error, 'notFound')) throw error;
    if (error.details?.name !== undefined) throw missing();
    throw new Error(`${groupResourceOf(resource)} does not implement the scale subresource`, {
      cause: error,
    });
  }
}

function statusOf(
  { metadata, status }: DeepReadonly<PodDisruptionBudget>,
  pods: readonly DeepReadonly<Pod>[],
  expected: Expected,
  nowMs: number,
): Status {
  const evicted = Object.entries(status?.disruptedPods ?? {}).filter(([name, time]) => {
    const pod = pods.find((each) => each.metadata.name === name);
    const isPending = Date.parse(time) + DELETION_TIMEOUT_MS >= nowMs;
    return isPending && pod !== undefined && pod.metadata.deletionTimestamp === undefined;
  });
  const names = new Set(evicted.map(([name]) => name));
  const currentHealthy = pods.filter(
    (pod) =>
      pod.metadata.deletionTimestamp === undefined &&
      !names.has(pod.metadata.name) &&
      isPodReady(pod),
  ).length;
  const disruptionsAllowed = expected.pods > 0 ? Math.max(0, currentHealthy - expected.healthy) : 0;
  const observedGeneration = metadata.generation ?? 0;
  const isAllowed = disruptionsAllowed > 0;
  return {
    observedGeneration,
    ...(evicted.length > 0 && { disruptedPods: Object.fromEntries(evicted) }),
    disruptionsAllowed,
    currentHealthy,
    desiredHealthy: expected.healthy,
    expectedPods: expected.pods,
    conditions: withCondition(status, nowMs, {
      status: isAllowed ? 'True' : 'False',
      observedGeneration,
      reason: isAllowed ? 'SufficientPods' : 'InsufficientPods',
      message: '',
    }),
  };
}

/** Allows no disruption, because their number is unknown. */
function failedStatus(
  { status }: DeepReadonly<PodDisruptionBudget>,
  message: string,
  nowMs: number,
): Status {
  // The server omits a generation of 0.
  const observedGeneration = status?.observedGeneration || undefined;
  const condition = {
    status: 'False',
    ...(observedGeneration !== undefined && { observedGeneration }),
    reason: 'SyncFailed',
    message,
  } as const;
  return {
    currentHealthy: 0,
    desiredHealthy: 0,
    expectedPods: 0,
    ...(structuredClone(status ?? {}) as Partial<Status>),
    disruptionsAllowed: 0,
    conditions: withCondition(status, nowMs, condition),
  };
}

function withCondition(
  status: DeepReadonly<Status> | undefined,
  nowMs: number,
  condition: Omit<Condition, 'type' | 'lastTransitionTime'>,
): NonNullable<Status['conditions']> {
  const current = (status?.conditions ?? []) as readonly Condition[];
  return setCondition(current, { type: 'DisruptionAllowed', ...condition }, nowMs);
}
