import type { Pod } from '../../api/builtin.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { isReady, readySince } from '../../api/workloads.ts';

/**
 * How many Pods have been ready for `minReadySeconds`, and in how many milliseconds the next one
 * will have been; undefined if none is about to.
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
  const coming = waitsMs.filter((ms) => ms > 0);
  return {
    available: waitsMs.length - coming.length,
    nextMs: coming.length > 0 ? coming.reduce((next, ms) => Math.min(next, ms)) : undefined,
  };
}

/** Which Pod to do without: one without a node before one that is not ready, before the youngest. */
export function leastWantedFirst(a: DeepReadonly<Pod>, b: DeepReadonly<Pod>): number {
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
