import type { Pod } from '../../api/builtin.ts';
import type { Count, CountStatus } from '../../api/generated/count.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { isActive, isReady } from '../../api/workloads.ts';
import { withReadiness } from '../../api/readiness.ts';
import type { Readiness } from '../../api/readiness.ts';
import type { Obstacle } from './obstacle.ts';
import { isOutdated, podSelector } from './pod.ts';

/** The status of a Count that cannot be carried out: as it was, and stalled. */
export function refusedStatus(
  { metadata, status }: DeepReadonly<Count>,
  { reason, message }: Obstacle,
  now: number,
): CountStatus {
  const { conditions, ...numbers } = status ?? {};
  const observedGeneration = metadata.generation ?? 0;
  const stalled: Readiness = { kind: 'stalled', reason, message };
  return {
    ...numbers,
    observedGeneration,
    healthy: false,
    conditions: withReadiness(conditions, stalled, observedGeneration, now),
  };
}

/**
 * The status that the Count should have, given its Pods as far as they are known. `healthy` counts
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

  const readiness: Readiness = asWanted
    ? { kind: 'ready', reason: 'PodsReady', message: progress }
    : obstacle?.stalled
      ? { kind: 'stalled', reason: obstacle.reason, message: obstacle.message }
      : {
          kind: 'reconciling',
          reason: obstacle?.reason ?? 'PodsNotReady',
          message: obstacle?.message ?? progress,
          progress,
        };

  return {
    observedGeneration,
    healthy,
    replicas: active.length,
    readyReplicas: ready.length,
    selector: podSelector(count),
    conditions: withReadiness(count.status?.conditions, readiness, observedGeneration, now),
  };
}
