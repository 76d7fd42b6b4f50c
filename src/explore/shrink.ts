import type { Deviation } from './faults.ts';
import type { FinishedRun } from './finished-run.ts';
import { planOf } from './finished-run.ts';
import type { Violation } from './oracles.ts';
import type { Plan } from './schedule.ts';

/** A schedule that violates a rule. */
export interface FailedRun {
  readonly run: FinishedRun;
  readonly violation: Violation;
}

/**
 * Removes faults from a schedule while it still violates the same rule. Returns the schedule with the fewest faults, and
 * among those one with the fewest steps.
 *
 * @param attempt runs a schedule; undefined if it violates nothing
 */
export async function shrink(
  failed: FailedRun,
  attempt: (plan: Plan) => Promise<FailedRun | undefined>,
): Promise<FailedRun> {
  let best = failed;
  const tries = async (deviations: readonly Deviation[]): Promise<boolean> => {
    const result = await attempt(planOf(deviations));
    const isSmaller =
      result?.violation.rule === failed.violation.rule &&
      result.run.deviations.length < best.run.deviations.length;
    if (isSmaller) best = result;
    return isSmaller;
  };
  for (let index = 0; index < best.run.deviations.length;) {
    const isRemoved = await tries(best.run.deviations.toSpliced(index, 1));
    if (!isRemoved) index++;
  }
  return best;
}
