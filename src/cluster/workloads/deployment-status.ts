import type { Deployment, ReplicaSet } from '../../api/builtin.ts';
import { timestamp } from '../../api/conditions.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { nonZero } from '../support/pod-control.ts';
import { amountOf } from './rolling-update.ts';

type Status = NonNullable<Deployment['status']>;
type Condition = NonNullable<Status['conditions']>[number];

type ConditionDraft = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>;

export interface RolloutState {
  readonly owned: readonly DeepReadonly<ReplicaSet>[];
  readonly current: DeepReadonly<ReplicaSet> | undefined;
  readonly collisions: number;
}

interface Rollout {
  /** All Pods are available and of the current ReplicaSet. */
  readonly isComplete: boolean;
  /** All Pods are of the current ReplicaSet. */
  readonly isLatest: boolean;
  readonly isProgress: boolean;
}

/** Computes the status, which `kubectl rollout status` and `kubectl wait` read. */
export function deploymentStatus(
  deployment: DeepReadonly<Deployment>,
  { owned, current, collisions }: RolloutState,
  nowMs: number,
): Status {
  const { spec, metadata, status: previous } = deployment;
  const wanted = spec?.replicas ?? 1;
  const total = (of: (set: DeepReadonly<ReplicaSet>) => number | undefined) =>
    owned.reduce((sum, set) => sum + (of(set) ?? 0), 0);
  const replicas = total(({ status }) => status?.replicas);
  const availableReplicas = total(({ status }) => status?.availableReplicas);
  const desired = total((set) => set.spec?.replicas ?? 1);
  const updatedReplicas = current?.status?.replicas ?? 0;
  const numbers = {
    replicas,
    updatedReplicas,
    readyReplicas: total(({ status }) => status?.readyReplicas),
    availableReplicas,
    unavailableReplicas: Math.max(0, desired - availableReplicas),
    collisionCount: collisions,
  };
  // As upstream, there is no sum before each ReplicaSet has reported its part.
  const isCounted = owned.every(
    ({ status }) => !status?.observedGeneration || status.terminatingReplicas !== undefined,
  );
  const { maxUnavailable } = spec?.strategy?.rollingUpdate ?? {};
  const minAvailable = wanted - amountOf(maxUnavailable, wanted, 'down');
  const isComplete =
    updatedReplicas === wanted && replicas === wanted && availableReplicas === wanted;
  const isLatest = replicas === updatedReplicas;
  const isProgress =
    updatedReplicas > (previous?.updatedReplicas ?? 0) ||
    replicas < (previous?.replicas ?? 0) ||
    availableReplicas > (previous?.availableReplicas ?? 0);
  const drafts = [
    available(availableReplicas >= minAvailable),
    progressing(deployment, current, { isComplete, isLatest, isProgress }, nowMs),
  ];
  return {
    observedGeneration: metadata.generation ?? 0,
    ...nonZero(numbers),
    ...(isCounted && { terminatingReplicas: total(({ status }) => status?.terminatingReplicas) }),
    conditions: [
      ...merge(previous?.conditions, drafts, isProgress, nowMs),
      ...replicaFailure(owned, current),
    ],
  };
}

/** Returns the ReplicaFailure condition of the new ReplicaSet, or of an old one. */
function replicaFailure(
  owned: readonly DeepReadonly<ReplicaSet>[],
  current: DeepReadonly<ReplicaSet> | undefined,
): Condition[] {
  const failures = [current, ...owned].flatMap(
    (set) => set?.status?.conditions?.filter(({ type }) => type === 'ReplicaFailure') ?? [],
  );
  const [failure] = failures;
  if (!failure) return [];
  return [{ ...failure, lastUpdateTime: failure.lastTransitionTime } as Condition];
}

/** Returns the time until the progress deadline, in milliseconds, or undefined if there is none. */
export function progressDeadlineMs(
  deployment: DeepReadonly<Deployment>,
  status: Status,
  nowMs: number,
): number | undefined {
  const condition = status.conditions?.find(({ type }) => type === 'Progressing');
  if (condition?.status !== 'True' || condition.reason !== 'ReplicaSetUpdated') return undefined;
  const deadlineMs =
    Date.parse(condition.lastUpdateTime ?? '') +
    (deployment.spec?.progressDeadlineSeconds ?? 600) * 1000;
  return Math.max(0, deadlineMs - nowMs) + 1000;
}

function available(isAvailable: boolean): ConditionDraft {
  return isAvailable
    ? {
        type: 'Available',
        status: 'True',
        reason: 'MinimumReplicasAvailable',
        message: 'Deployment has minimum availability.',
      }
    : {
        type: 'Available',
        status: 'False',
        reason: 'MinimumReplicasUnavailable',
        message: 'Deployment does not have minimum availability.',
      };
}

function progressing(
  { metadata, spec, status }: DeepReadonly<Deployment>,
  current: DeepReadonly<ReplicaSet> | undefined,
  { isComplete, isLatest, isProgress }: Rollout,
  nowMs: number,
): ConditionDraft {
  const set = `ReplicaSet "${current?.metadata.name ?? metadata.name}"`;
  const condition = (is: 'True' | 'False' | 'Unknown', reason: string, message: string) => ({
    type: 'Progressing',
    status: is,
    reason,
    message,
  });
  if (spec?.paused) return condition('Unknown', 'DeploymentPaused', 'Deployment is paused');
  const before = status?.conditions?.find(({ type }) => type === 'Progressing');
  const complete = condition(
    'True',
    'NewReplicaSetAvailable',
    `${set} has successfully progressed.`,
  );
  // As upstream, scaling is no progress of a rollout that was complete.
  if (isComplete || (isLatest && before?.message === complete.message)) return complete;
  const deadlineMs = (spec?.progressDeadlineSeconds ?? 600) * 1000;
  const isRolling = before?.reason === 'ReplicaSetUpdated' || before?.status === 'False';
  const idleMs = nowMs - Date.parse(before?.lastUpdateTime ?? '');
  if (!isProgress && isRolling && (before.status === 'False' || idleMs >= deadlineMs)) {
    return condition('False', 'ProgressDeadlineExceeded', `${set} has timed out progressing.`);
  }
  return condition('True', 'ReplicaSetUpdated', `${set} is progressing.`);
}

/**
 * Returns the conditions with the drafts. As upstream, those of other controllers are kept, and a condition that
 * changes or progresses becomes the last one.
 */
function merge(
  previous: DeepReadonly<Condition[]> = [],
  drafts: readonly ConditionDraft[],
  isProgress: boolean,
  nowMs: number,
): Condition[] {
  const now = timestamp(nowMs);
  const conditions = new Map(previous.map((condition) => [condition.type, condition as Condition]));
  conditions.delete('ReplicaFailure');
  for (const draft of drafts) {
    const before = conditions.get(draft.type);
    const isSameStatus = before?.status === draft.status;
    const isUpdated =
      !isSameStatus ||
      before.reason !== draft.reason ||
      (draft.reason === 'ReplicaSetUpdated' && isProgress);
    if (isUpdated) conditions.delete(draft.type);
    conditions.set(draft.type, {
      ...draft,
      lastUpdateTime: isUpdated ? now : (before.lastUpdateTime ?? now),
      lastTransitionTime: isSameStatus ? (before.lastTransitionTime ?? now) : now,
    });
  }
  return [...conditions.values()];
}
