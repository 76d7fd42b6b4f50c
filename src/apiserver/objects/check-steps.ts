/**
 * A check in steps, between which other requests may proceed. Yields the weight of each part that it has checked: about
 * its number of characters.
 */
export type CheckSteps<T = void> = Generator<number, T>;

/** Weight of a part of which most parts of a wide object are: an item or a field with few characters. */
export const PART_WEIGHT = 32;

/** Runs all steps of a check at once. */
export function inOneStep<T>(steps: CheckSteps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}
