import { removeCondition, setCondition } from './conditions.ts';
import type { Condition } from './conditions.ts';
import type { DeepReadonly } from './object.ts';

/** How an object stands between what its spec wants and what there is. */
export type Readiness =
  /** What is wanted has been reached. */
  | { readonly kind: 'ready'; readonly reason: string; readonly message: string }
  /** On the way; `progress`, where given, tells how far, besides why it is not ready. */
  | {
      readonly kind: 'reconciling';
      readonly reason: string;
      readonly message: string;
      readonly progress?: string;
    }
  /** Only a change by the user helps. */
  | { readonly kind: 'stalled'; readonly reason: string; readonly message: string };

/**
 * `conditions` as kstatus reads them: Ready always, Reconciling and Stalled (abnormal-true) only
 * while they hold. Conditions of other types stay as they are, and so does the order.
 *
 * @param now milliseconds since the epoch, for a status that flips
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

/** True if the conditions say that what is wanted at `generation` has been reached. */
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
