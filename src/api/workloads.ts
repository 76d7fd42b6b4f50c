import type { Deployment, Pod } from './builtin.ts';
import type { DeepReadonly } from './object.ts';

/** A Pod that has run to its end never starts again. */
export function isFinished(pod: DeepReadonly<Pod>): boolean {
  return pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
}

/** Neither finished nor going away. */
export function isActive(pod: DeepReadonly<Pod>): boolean {
  return pod.metadata.deletionTimestamp === undefined && !isFinished(pod);
}

export function isReady(pod: DeepReadonly<Pod>): boolean {
  return readySince(pod) !== undefined;
}

/** When the Pod became ready, in milliseconds since the epoch; undefined if it is not. */
export function readySince(pod: DeepReadonly<Pod>): number | undefined {
  const ready = pod.status?.conditions?.find(({ type }) => type === 'Ready');
  return ready?.status === 'True' ? Date.parse(ready.lastTransitionTime ?? '') || 0 : undefined;
}

/** How far a Deployment has come, in numbers of replicas. */
export interface Rollout {
  readonly wanted: number;
  /** Those that run what the Deployment says now. */
  readonly updated: number;
  readonly available: number;
  /** As many as wanted run what the Deployment says now, and there are no others. */
  readonly isComplete: boolean;
  /** It has taken longer than the Deployment allows. */
  readonly isLate: boolean;
}

export function rolloutOf({ metadata, spec, status }: DeepReadonly<Deployment>): Rollout {
  const wanted = spec?.replicas ?? 1;
  const available = status?.availableReplicas ?? 0;
  // Until its controller has seen it, what it says of updates is about what was wanted before.
  const isCurrent = status?.observedGeneration === metadata.generation;
  const updated = isCurrent ? (status?.updatedReplicas ?? 0) : 0;
  const isComplete =
    isCurrent && [updated, available, status?.replicas ?? 0].every((number) => number === wanted);
  const isLate =
    isCurrent &&
    (status?.conditions?.some(
      ({ type, reason }) => type === 'Progressing' && reason === 'ProgressDeadlineExceeded',
    ) ??
      false);
  return { wanted, updated, available, isComplete, isLate };
}
