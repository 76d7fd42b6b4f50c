import type { Clock } from '../util/clock.ts';

const LINES_PER_MINUTE = 10;

/**
 * Keeps a fault that strikes with every object from flooding the log: ten lines a minute, and the
 * first of a later minute tells how many were held back.
 */
export class LineBudget {
  readonly #clock: Clock;
  #minuteStartMs = -Infinity;
  #wanted = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Fields to log with a line, or undefined if it is to be held back. */
  take(): { readonly suppressed?: number } | undefined {
    const nowMs = this.#clock.monotonic();
    let suppressed = 0;
    if (nowMs - this.#minuteStartMs >= 60_000) {
      suppressed = Math.max(0, this.#wanted - LINES_PER_MINUTE);
      this.#minuteStartMs = nowMs;
      this.#wanted = 0;
    }
    if (++this.#wanted > LINES_PER_MINUTE) return undefined;
    return suppressed > 0 ? { suppressed } : {};
  }
}
