import type { Pod } from '../../api/builtin.ts';
import type { Count } from '../../api/generated/count.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { isActive, isFinished, isReady } from '../../api/workloads.ts';
import { isOutdated, ordinalOf } from './pod.ts';

/** What separates the actual state from the desired one. Empty when there is nothing to do. */
export interface Plan {
  /** Ordinals without a Pod, lowest first. */
  readonly create: readonly number[];
  /** Pods in the way, highest ordinal first. */
  readonly delete: readonly DeepReadonly<Pod>[];
}

/**
 * Compares the Pods that a Count owns with those it wants.
 *
 * A Pod that is going away keeps its ordinal until it is gone: its name is taken. Finished Pods and
 * those beyond the count go at once. Pods of another image go one by one, highest ordinal first,
 * and only while every ordinal has a ready Pod, so that an image that does not start costs one Pod
 * and not all of them; those which are not ready serve nobody and go at once.
 */
export function planPods(count: DeepReadonly<Count>, owned: readonly DeepReadonly<Pod>[]): Plan {
  const wanted = count.spec.count;
  const byOrdinal = new Map<number, DeepReadonly<Pod>>();
  const inTheWay: DeepReadonly<Pod>[] = [];
  for (const pod of owned) {
    const ordinal = ordinalOf(count, pod);
    if (ordinal !== undefined && ordinal < wanted) byOrdinal.set(ordinal, pod);
    else inTheWay.push(pod);
  }
  const placed = [...byOrdinal.values()];
  const outdated = placed.filter((pod) => isActive(pod) && isOutdated(count, pod));
  const settled = byOrdinal.size === wanted && placed.every((pod) => isActive(pod) && isReady(pod));
  const replaced = settled
    ? outdated.toSorted(highestFirst(count)).slice(0, 1)
    : outdated.filter((pod) => !isReady(pod));
  return {
    create: Array.from({ length: wanted }, (_, ordinal) => ordinal).filter(
      (ordinal) => !byOrdinal.has(ordinal),
    ),
    delete: [...inTheWay, ...placed.filter(isFinished), ...replaced]
      .filter((pod) => pod.metadata.deletionTimestamp === undefined)
      .toSorted(highestFirst(count)),
  };
}

function highestFirst(count: DeepReadonly<Count>) {
  const rank = (pod: DeepReadonly<Pod>) => ordinalOf(count, pod) ?? Infinity;
  return (a: DeepReadonly<Pod>, b: DeepReadonly<Pod>): number =>
    rank(b) > rank(a) ? 1 : rank(b) < rank(a) ? -1 : a.metadata.name < b.metadata.name ? 1 : -1;
}
