import type { MaybePromise } from '../../util/maybe-promise.ts';
import { foldInOrder, whenReady } from '../../util/maybe-promise.ts';
import type { StoredObject } from '../objects/resource-definition.ts';

/** A mutating policy or webhook. */
export interface MutationStep {
  /** Unique among the steps. */
  readonly id: string;
  /** Whether it runs again after later changes (`reinvocationPolicy: IfNeeded`). */
  readonly isReinvocable: boolean;
  /** Returns the object, changed or the same, or undefined if the step does not apply to it. */
  run(object: StoredObject | undefined): MaybePromise<StoredObject | undefined>;
}

/**
 * Runs mutating policies and webhooks one after another, and once more those that allow it and that ran before
 * later changes.
 *
 * @param stepsOf returns the steps for an object
 */
export function mutateInOrder(
  initial: StoredObject | undefined,
  stepsOf: (object: StoredObject | undefined) => readonly MutationStep[],
): MaybePromise<StoredObject | undefined> {
  /** Reinvocable steps that ran since the last change, and before it. */
  let recent = new Set<string>();
  let outdated = new Set<string>();
  const apply = (object: StoredObject | undefined, step: MutationStep) =>
    whenReady(step.run(object), (result = object) => {
      if (result !== object) {
        outdated = outdated.union(recent);
        recent = new Set();
      }
      if (step.isReinvocable) recent.add(step.id);
      return result;
    });
  return whenReady(foldInOrder(stepsOf(initial), initial, apply), (object) => {
    if (outdated.size === 0) return object;
    return foldInOrder(stepsOf(object), object, (current, step) =>
      outdated.has(step.id) ? apply(current, step) : current,
    );
  });
}
