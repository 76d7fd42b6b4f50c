import { removeCondition, setCondition } from './conditions.ts';
import type { Condition } from './conditions.ts';
import type { DeepReadonly, KubernetesObject } from './object.ts';

/** The progress of an object towards its spec, as in kstatus. */
export type Readiness =
  /** The spec is fulfilled. */
  | { readonly kind: 'ready'; readonly reason: string; readonly message: string }
  /**
   * In progress. `message` says why the object is not ready. `progress` is the message of the condition Reconciling, which
   * kstatus shows instead of Ready; by default it is `message`.
   */
  | {
      readonly kind: 'reconciling';
      readonly reason: string;
      readonly message: string;
      readonly progress?: string;
    }
  /** Blocked until the user changes something. */
  | { readonly kind: 'stalled'; readonly reason: string; readonly message: string };

/** The types of the conditions of kstatus. */
export const READINESS_CONDITIONS: ReadonlySet<string> = new Set([
  'Ready',
  'Reconciling',
  'Stalled',
]);

/**
 * Returns `conditions` with those of kstatus: Ready always, Reconciling and Stalled (abnormal-true) only
 * while they are true. Other conditions and the order are unchanged.
 *
 * @param now transition time of changed conditions, in milliseconds since the epoch
 */
export function withReadiness(
  conditions: DeepReadonly<Condition[]> = [],
  readiness: Readiness,
  observedGeneration: number,
  now: number,
): Condition[] {
  const { reason, message } = readiness;
  const set = (present: readonly Condition[], type: string, status: 'True' | 'False') =>
    setCondition(present, { type, status, observedGeneration, reason, message }, now);
  const next = set(conditions, 'Ready', readiness.kind === 'ready' ? 'True' : 'False');
  switch (readiness.kind) {
    case 'ready':
      return removeCondition(removeCondition(next, 'Reconciling'), 'Stalled');
    case 'reconciling':
      return removeCondition(
        setCondition(
          next,
          {
            type: 'Reconciling',
            status: 'True',
            observedGeneration,
            reason: 'Progressing',
            message: readiness.progress ?? message,
          },
          now,
        ),
        'Stalled',
      );
    case 'stalled':
      return set(removeCondition(next, 'Reconciling'), 'Stalled', 'True');
  }
}

/** Reports whether the conditions contain Ready=True for `generation`. */
export function isReadyAt(
  conditions: DeepReadonly<Condition[]> | undefined,
  generation: number | undefined,
): boolean {
  return (
    conditions?.some(
      ({ type, status, observedGeneration }) =>
        type === 'Ready' && status === 'True' && observedGeneration === generation,
    ) ?? false
  );
}

/** Reports whether the status of `object` contains Ready=True for its generation. */
export function isReady({
  metadata,
  status,
}: DeepReadonly<KubernetesObject & { status?: WithConditions }>): boolean {
  return isReadyAt(status?.conditions, metadata.generation);
}

/** Reports whether `status` contains Ready=True for the generation of `object`, and its present status does not. */
export function becomesReady(
  object: DeepReadonly<KubernetesObject & { status?: WithConditions }>,
  status: WithConditions,
): boolean {
  return isReadyAt(status.conditions, object.metadata.generation) && !isReady(object);
}

interface WithConditions {
  readonly conditions?: Condition[];
}
