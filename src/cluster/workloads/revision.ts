import type { ReplicaSet } from '../../api/builtin.ts';
import type { DeepReadonly } from '../../api/object.ts';

/** Annotation that numbers a Deployment's rollouts; `kubectl rollout history` reads it. */
export const REVISION = 'deployment.kubernetes.io/revision';

/** 0 if the set has none. */
export function revisionOf(set: DeepReadonly<ReplicaSet>): number {
  return Number.parseInt(set.metadata.annotations?.[REVISION] ?? '', 10) || 0;
}

/** Oldest first. */
export function byRevision(a: DeepReadonly<ReplicaSet>, b: DeepReadonly<ReplicaSet>): number {
  return revisionOf(a) - revisionOf(b);
}
