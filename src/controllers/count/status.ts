import type { Pod } from '../../api/builtin.ts';
import { removeCondition, setCondition } from '../../api/conditions.ts';
import type { Condition } from '../../api/conditions.ts';
import type { Count, CountStatus } from '../../api/generated/count.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { isActive, isOutdated, isReady, podSelector } from './pod.ts';

/** Why a Count cannot get on, in the words of its conditions. */
export interface Obstacle {
  /** CamelCase, stable. */
  readonly reason: string;
  readonly message: string;
  /** Only a change by the user helps; otherwise the next try may. */
  readonly stalled: boolean;
}

/**
 * The status that the Count should have, given its Pods as the cache has them. `healthy` counts
 * ready Pods alone; `Ready` also wants them to run what the spec says now.
 */
export function buildStatus(
  count: DeepReadonly<Count>,
  owned: readonly DeepReadonly<Pod>[],
  obstacle: Obstacle | undefined,
  now: number,
): CountStatus {
  const active = owned.filter(isActive);
  const ready = active.filter(isReady);
  const wanted = count.spec.count;
  const observedGeneration = count.metadata.generation ?? 0;
  const healthy = active.length === wanted && ready.length === wanted;
  const current = ready.filter((pod) => !isOutdated(count, pod)).length;
  const progress = `${current} of ${wanted} Pods are ready`;
  const asWanted = healthy && current === wanted && !obstacle;

  let conditions: Condition[] = [...(count.status?.conditions ?? [])];
  const set = (type: string, status: 'True' | 'False', reason: string, message: string) => {
    conditions = setCondition(
      conditions,
      { type, status, observedGeneration, reason, message },
      now,
    );
  };
  const clear = (type: string) => {
    conditions = removeCondition(conditions, type);
  };
  if (asWanted) set('Ready', 'True', 'PodsReady', progress);
  else set('Ready', 'False', obstacle?.reason ?? 'PodsNotReady', obstacle?.message ?? progress);
  if (asWanted || obstacle?.stalled) clear('Reconciling');
  else set('Reconciling', 'True', 'Progressing', progress);
  if (obstacle?.stalled) set('Stalled', 'True', obstacle.reason, obstacle.message);
  else clear('Stalled');

  return {
    observedGeneration,
    healthy,
    replicas: active.length,
    readyReplicas: ready.length,
    selector: podSelector(count),
    conditions,
  };
}

/** True if the status says that what is wanted now has been reached. */
export function isReconciled(
  status: DeepReadonly<CountStatus> | undefined,
  generation: number | undefined,
): boolean {
  return (
    status?.conditions?.some(
      ({ type, status: value, observedGeneration }) =>
        type === 'Ready' && value === 'True' && observedGeneration === generation,
    ) ?? false
  );
}
