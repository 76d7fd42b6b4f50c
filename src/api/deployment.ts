import type { Deployment } from './builtin.ts';
import type { DeepReadonly } from './object.ts';

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
