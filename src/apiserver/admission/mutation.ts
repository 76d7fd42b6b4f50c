import type { StoredObject } from '../objects/resource-definition.ts';

/** A mutating policy or webhook. */
export interface MutationStep {
  /** Unique among the steps. */
  readonly id: string;
  /** Whether it runs again after later changes (`reinvocationPolicy: IfNeeded`). */
  readonly isReinvocable: boolean;
  /** Returns the object, changed or the same, or undefined if the step does not apply to it. */
  run(object: StoredObject | undefined): Promise<StoredObject | undefined>;
}

/**
 * Runs mutating policies and webhooks one after another, and once more those that allow it and that ran before
 * later changes.
 *
 * @param stepsOf returns the steps for an object
 */
export async function mutateInOrder(
  initial: StoredObject | undefined,
  stepsOf: (object: StoredObject | undefined) => readonly MutationStep[],
): Promise<StoredObject | undefined> {
  let object = initial;
  /** Reinvocable steps that ran since the last change, and before it. */
  let recent = new Set<string>();
  let outdated = new Set<string>();
  const apply = async (step: MutationStep) => {
    const result = (await step.run(object)) ?? object;
    if (result !== object) {
      outdated = outdated.union(recent);
      recent = new Set();
    }
    if (step.isReinvocable) recent.add(step.id);
    object = result;
  };
  for (const step of stepsOf(initial)) await apply(step);
  if (outdated.size === 0) return object;
  for (const step of stepsOf(object)) if (outdated.has(step.id)) await apply(step);
  return object;
}
