/** Work for one Pod: about 0.1 s of processor time. */
const POD_UNITS = 8_000_000;

/** Units of an operation. A character costs one unit. */
const OPERATION = 20;

/** Thrown when a budget is used up. */
export class OverBudget extends Error {}

/**
 * Limits the work of the simulated kubelet for the commands, variables and output of one Pod. It counts operations
 * and characters instead of the Pod's time, because a loop needs no time and a word can have any length.
 */
export class WorkBudget {
  #left = POD_UNITS;

  /** @throws {OverBudget} if the work exceeds the budget, also for each later work */
  spend(characters: number, operations: number = 1): void {
    this.#left -= characters + OPERATION * operations;
    if (this.#left < 0) throw new OverBudget();
  }
}
