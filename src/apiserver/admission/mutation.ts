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
 * Runs the built-in plugins, then mutating policies and webhooks one after another. If one of these changed the object,
 * runs the plugins once more, and those that allow it and that ran before later changes.
 *
 * @param plugins returns the object with their changes; the same value if there are none
 * @param stepsOf returns the policies and webhooks for an object
 */
export async function mutateInOrder(
  initial: StoredObject | undefined,
  plugins: MutationStep['run'],
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
  const builtIn: MutationStep = { id: 'built-in plugins', isReinvocable: true, run: plugins };
  for (const step of [builtIn, ...stepsOf(object)]) await apply(step);
  if (outdated.size === 0) return object;
  await apply(builtIn);
  for (const step of stepsOf(object)) if (outdated.has(step.id)) await apply(step);
  return object;
}
