import { PODS, REPLICA_SETS } from '../../api/builtin.ts';
import type { Pod, ReplicaSet } from '../../api/builtin.ts';
import { timestamp } from '../../api/conditions.ts';
import { controllerOf } from '../../api/metadata.ts';
import type { DeepReadonly } from '../../api/object.ts';
import type { Resource } from '../../api/resource.ts';
import { isActive, isFinished, isPodReady } from '../../api/workloads.ts';
import type { SharedInformer } from '../../cache/shared-informer.ts';
import { Controller } from '../../manager/controller.ts';
import { OWNER_INDEX } from '../../manager/enqueue.ts';
import { StatusWriter } from '../../manager/status-writer.ts';
import { isApiError } from '../../api/api-error.ts';
import { messageOf } from '../../util/values.ts';
import { done, requeueAfter } from '../../workqueue/outcome.ts';
import { claim, claimable, mapToClaimants } from '../support/claim.ts';
import { FIELD_MANAGER } from '../support/field-manager.ts';
import {
  availability,
  BURST_REPLICAS,
  buildTemplatePod,
  byDeletionCost,
  nonZero,
  PodControl,
} from '../support/pod-control.ts';
import type { ClusterDeps } from '../support/resource-monitors.ts';

/**
 * ReplicaSet controller: maintains `spec.replicas` Pods. Adopts Pods without a controller that the
 * selector matches, and releases Pods that it no longer matches.
 */
export function replicaSets(deps: ClusterDeps): Controller {
  return replicaController(deps, deps.informers.for(REPLICA_SETS), 'replicaset-controller');
}

/** ReplicationControllers in the form of ReplicaSets, which differ only in their selector. */
const REPLICATION_CONTROLLERS: Resource<ReplicaSet> = {
  ...REPLICA_SETS,
  group: '',
  plural: 'replicationcontrollers',
  kind: 'ReplicationController',
};

/** ReplicationController controller: does the same as `replicaSets`. */
export function replicationControllers(deps: ClusterDeps): Controller {
  const controllers = deps.informers.for(REPLICATION_CONTROLLERS, { transform: withSelector });
  return replicaController(deps, controllers, 'replication-controller');
}

function withSelector(controller: ReplicaSet): ReplicaSet {
  const { spec } = controller;
  if (!spec) return controller;
  const matchLabels = spec.selector as Record<string, string>;
  return { ...controller, spec: { ...spec, selector: { matchLabels } } };
}

function replicaController(
  deps: ClusterDeps,
  sets: SharedInformer<ReplicaSet>,
  component: string,
): Controller {
  const { resource } = sets;
  const pods = claimable(deps, PODS);
  const statuses = new StatusWriter(resource, FIELD_MANAGER);
  const control = new PodControl(deps.events.recorder(component));
  /** Returns the active Pods of all ReplicaSets of the same Deployment. */
  const related = (of: DeepReadonly<ReplicaSet>) => {
    const owner = controllerOf(of)?.uid;
    return sets.lister
      .list({ namespace: of.metadata.namespace })
      .filter((set) => owner !== undefined && controllerOf(set)?.uid === owner)
      .flatMap(({ metadata: { uid } }) => pods.lister.byIndex(OWNER_INDEX, uid))
      .filter(isActive);
  };
  return new Controller(deps, {
    name: resource.kind.toLowerCase(),
    kind: resource.kind,
    concurrency: 10,
    sync: async (key, context) => {
      const set = sets.lister.get(key);
      if (!set) return done();
      const active = await claim(context, {
        owner: set,
        ownerResource: resource,
        owned: pods,
        ignore: (pod) => !isActive(pod),
      });
      const missing = (set.spec?.replicas ?? 1) - active.length;
      let failure: unknown;
      if (set.metadata.deletionTimestamp === undefined && missing > 0) {
        const draft = buildTemplatePod(set, set.spec?.template);
        failure = await control.create(
          context,
          set,
          Array.from({ length: Math.min(missing, BURST_REPLICAS) }, () => draft),
        );
      } else if (set.metadata.deletionTimestamp === undefined && missing < 0) {
        const surplus = active.toSorted(byDeletionCost(related(set))).slice(0, -missing);
        failure = await control.delete(context, set, surplus);
      }
      const { minReadySeconds = 0 } = set.spec ?? {};
      const { available, nextMs } = availability(active, minReadySeconds, deps.clock.now());
      const terminating = pods.lister.byIndex(OWNER_INDEX, set.metadata.uid).filter(isTerminating);
      const status = {
        ...statusOf(set, active, available),
        // ReplicationControllers have no such field.
        ...(resource === REPLICA_SETS && { terminatingReplicas: terminating.length }),
        ...conditionsOf(set, {
          missing,
          failure: isApiError(failure, 'conflict') ? undefined : failure,
          now: timestamp(deps.clock.now()),
        }),
      };
      if (statuses.differs(set, status)) await statuses.write(context, set, status);
      if (failure !== undefined) throw failure;
      return nextMs === undefined ? done() : requeueAfter(nextMs);
    },
  })
    .for(sets)
    .watches(pods, mapToClaimants(sets));
}

function isTerminating(pod: DeepReadonly<Pod>): boolean {
  return pod.metadata.deletionTimestamp !== undefined && !isFinished(pod);
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
      readyReplicas: active.filter(isPodReady).length,
      availableReplicas: available,
    }),
  };
}

/** Returns the conditions, with ReplicaFailure while Pods cannot be created or deleted. */
function conditionsOf(
  { status }: DeepReadonly<ReplicaSet>,
  { missing, failure, now }: { missing: number; failure: unknown; now: string },
): Pick<NonNullable<ReplicaSet['status']>, 'conditions'> {
  const current = structuredClone(status?.conditions ?? []) as NonNullable<
    NonNullable<ReplicaSet['status']>['conditions']
  >;
  const isFailed = current.some(({ type }) => type === 'ReplicaFailure');
  const others = current.filter(({ type }) => type !== 'ReplicaFailure');
  // Like kube-controller-manager, keep the message of the first failure.
  if (failure !== undefined && isFailed) return { conditions: current };
  if (failure === undefined) return others.length > 0 ? { conditions: others } : {};
  const condition = {
    type: 'ReplicaFailure',
    status: 'True',
    lastTransitionTime: now,
    reason: missing > 0 ? 'FailedCreate' : 'FailedDelete',
    message: messageOf(failure),
  };
  return { conditions: [...others, condition] };
}
