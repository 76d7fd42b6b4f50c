import type { Pod } from './builtin.ts';
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
