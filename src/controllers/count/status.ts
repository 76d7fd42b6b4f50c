import type { Pod } from '../../api/builtin.ts';
import type { Count, CountStatus } from '../../api/generated/count.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { withReadiness } from '../../api/readiness.ts';
import type { Readiness } from '../../api/readiness.ts';
import { isActive, isReady } from '../../api/workloads.ts';
import { isOutdated, podSelector } from './pods.ts';

/** Why a Count does not have its Pods. */
export interface Failure {
  /** CamelCase and stable, for conditions and events. */
  readonly reason: string;
  readonly message: string;
  /** Whether the user must change something; otherwise a retry may succeed. */
  readonly stalled: boolean;
  /** The error of the request that failed, if one did. */
  readonly cause?: unknown;
}

/** Returns the status of a Count with an invalid spec: its Pods are unchanged, and Stalled is true. */
export function invalidStatus(
  { metadata, status }: DeepReadonly<Count>,
  { reason, message }: Pick<Failure, 'reason' | 'message'>,
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
 * Returns the status of a Count with the Pods `owned`. `healthy` counts ready Pods; `Ready` also
 * requires that they run the image of the spec.
 */
export function buildStatus(
  count: DeepReadonly<Count>,
  owned: readonly DeepReadonly<Pod>[],
  failure: Failure | undefined,
  now: number,
): CountStatus {
  const active = owned.filter(isActive);
  const ready = active.filter(isReady);
  const desired = count.spec.count;
  const observedGeneration = count.metadata.generation ?? 0;
  const healthy = active.length === desired && ready.length === desired;
  const current = ready.filter((pod) => !isOutdated(count, pod)).length;
  const progress = `${current} of ${desired} Pods are ready`;

  const readiness: Readiness = failure?.stalled
    ? { kind: 'stalled', reason: failure.reason, message: failure.message }
    : healthy && current === desired && !failure
      ? { kind: 'ready', reason: 'PodsReady', message: progress }
      : {
          kind: 'reconciling',
          reason: failure?.reason ?? 'PodsNotReady',
          message: failure?.message ?? progress,
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
