import type { Deployment, Job, JobCondition, Pod } from './builtin.ts';
import type { DeepReadonly } from './object.ts';

/** Reports whether the Pod is in a terminal phase. */
export function isFinished(pod: DeepReadonly<Pod>): boolean {
  return pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
}

/** Reports whether the Pod is neither finished nor being deleted. */
export function isActive(pod: DeepReadonly<Pod>): boolean {
  return pod.metadata.deletionTimestamp === undefined && !isFinished(pod);
}

export function isPodReady(pod: DeepReadonly<Pod>): boolean {
  return readySince(pod) !== undefined;
}

/** Returns when the Pod became ready, in milliseconds since the epoch, or undefined if it is not ready. */
export function readySince(pod: DeepReadonly<Pod>): number | undefined {
  const ready = pod.status?.conditions?.find(({ type }) => type === 'Ready');
  return ready?.status === 'True' ? Date.parse(ready.lastTransitionTime ?? '') || 0 : undefined;
}

/**
 * Returns the condition Complete or Failed of a Job that has finished, with the reason and the message; undefined while
 * the Job runs, and without a Job.
 */
export function finishedCondition(
  job: DeepReadonly<Pick<Job, 'status'>> | undefined,
): DeepReadonly<JobCondition> | undefined {
  const conditions = job?.status?.conditions;
  return conditionOf(conditions, 'Complete', 'True') ?? conditionOf(conditions, 'Failed', 'True');
}

/** Returns the condition of a type, if it has a status. */
export function conditionOf<T extends { readonly type: string; readonly status: string }>(
  conditions: readonly T[] | undefined,
  type: string,
  status: string,
): T | undefined {
  return conditions?.find((condition) => condition.type === type && condition.status === status);
}

/** The rollout of a Deployment in numbers of replicas. */
export interface Rollout {
  readonly desired: number;
  /** Replicas with the current Pod template. */
  readonly updated: number;
  readonly available: number;
  /** All desired replicas are updated and available, and there are no others. */
  readonly isComplete: boolean;
  /** The rollout exceeded `progressDeadlineSeconds`. */
  readonly isDeadlineExceeded: boolean;
}

export function rolloutOf({ metadata, spec, status }: DeepReadonly<Deployment>): Rollout {
  const desired = spec?.replicas ?? 1;
  const available = status?.availableReplicas ?? 0;
  // Until the controller has observed this generation, the status describes a previous spec.
  const isCurrent = status?.observedGeneration === metadata.generation;
  const updated = isCurrent ? (status?.updatedReplicas ?? 0) : 0;
  const isComplete =
    isCurrent && [updated, available, status?.replicas ?? 0].every((number) => number === desired);
  const isDeadlineExceeded =
    isCurrent &&
    (status?.conditions?.some(
      ({ type, reason }) => type === 'Progressing' && reason === 'ProgressDeadlineExceeded',
    ) ??
      false);
  return { desired, updated, available, isComplete, isDeadlineExceeded };
}
