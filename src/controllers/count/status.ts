import type { Pod } from '../../api/builtin.ts';
import type { Count, CountStatus } from '../../api/generated/count.ts';
import { formatLabelSelector } from '../../api/label-selector.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { withReadiness } from '../../api/readiness.ts';
import type { Readiness } from '../../api/readiness.ts';
import { isActive, isPodReady } from '../../api/workloads.ts';
import { isOutdated, isSelected, podLabels } from './pods.ts';

/** Why a Count does not have its Pods. */
export interface CountFailure {
  /** CamelCase and stable, for conditions and events. */
  readonly reason: string;
  readonly message: string;
  /** Whether the user must change something; otherwise a retry may succeed. */
  readonly stalled: boolean;
  /** The error of the request that failed, if one did. */
  readonly cause?: unknown;
}

/** Returns the status of a Count with an invalid spec: its Pods are unchanged, and Stalled is true. */
export function invalidCountStatus(
  { metadata, status = {} }: DeepReadonly<Count>,
  problem: Pick<CountFailure, 'reason' | 'message'>,
  now: number,
): CountStatus {
  const observedGeneration = metadata.generation ?? 0;
  const stalled: Readiness = { kind: 'stalled', ...problem };
  const conditions = withReadiness(status.conditions, stalled, observedGeneration, now);
  return { ...status, observedGeneration, healthy: false, conditions };
}

/**
 * Returns the status of a Count with the Pods `owned`. It counts those that `selector` matches, because autoscalers find
 * the Pods by it. `healthy` counts ready Pods; `Ready` also requires that they run the image of the spec.
 */
export function buildCountStatus(
  count: DeepReadonly<Count>,
  owned: readonly DeepReadonly<Pod>[],
  failure: CountFailure | undefined,
  now: number,
): CountStatus {
  const active = owned.filter((pod) => isActive(pod) && isSelected(count, pod));
  const ready = active.filter(isPodReady);
  const desired = count.spec.count;
  const observedGeneration = count.metadata.generation ?? 0;
  const healthy = active.length === desired && ready.length === desired;
  const current = ready.filter((pod) => !isOutdated(count, pod)).length;
  const progress = `${current} of ${desired} Pods are ready`;
  const isComplete = healthy && current === desired;
  const { reason = isComplete ? 'PodsReady' : 'PodsNotReady', message = progress } = failure ?? {};
  const readiness: Readiness = failure?.stalled
    ? { kind: 'stalled', reason, message }
    : isComplete && !failure
      ? { kind: 'ready', reason, message }
      : { kind: 'reconciling', reason, message, progress };
  return {
    observedGeneration,
    healthy,
    replicas: active.length,
    readyReplicas: ready.length,
    selector: formatLabelSelector({ matchLabels: podLabels(count) }),
    conditions: withReadiness(count.status?.conditions, readiness, observedGeneration, now),
  };
}
