/**
 * Lets code continue when all promise reactions have run, one caller after another. So what one caller does until it waits
 * again is not interleaved with other code. Costs no turn of the event loop, which can be more expensive than a sync.
 */
export class SeparateTurns {
  readonly #waiting: (() => void)[] = [];
  #isScheduled = false;

  /** Resolves in a turn of its own. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    process.nextTick(() => {
      this.#isScheduled = false;
      this.#waiting.shift()?.();
      // Ticks precede promise reactions, so the next one is scheduled by a reaction.
      if (this.#waiting.length > 0) void Promise.resolve().then(() => this.#schedule());
    });
  }
}
