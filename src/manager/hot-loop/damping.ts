import { backoffMs } from '../../util/backoff.ts';
import type { BackoffPolicy } from '../../util/backoff.ts';
import type { Clock } from '../../util/clock.ts';
import { isWithin } from '../changed-paths.ts';
import type { FieldPath } from '../changed-paths.ts';

/** 1 s doubling to 5 min. */
export const DAMPING: BackoffPolicy = { initialMs: 1000, maxMs: 300_000 };

/** So long at least nothing must flap for a loop to be over, in milliseconds. */
export const SHORTEST_CALM_MS = 60_000;

/**
 * Slows a key down while its fields flap: a run may follow the one before only after a delay, which
 * grows each time they flap again. When they have not for a while, and for twice the delay, it is
 * over.
 */
export class Damping {
  readonly #clock: Clock;
  readonly #paths: readonly FieldPath[];
  readonly #onCalm: () => void;
  #rung = 0;
  #delayMs = 0;
  #dueMs = 0;
  /** The next run may come at once, whatever flaps until then. */
  #isLifted = false;
  #cancel: () => void = () => undefined;
  /** Runs that were put off so far. */
  damped = 0;

  constructor(clock: Clock, paths: readonly FieldPath[], onCalm: () => void) {
    this.#clock = clock;
    this.#paths = paths;
    this.#onCalm = onCalm;
    this.flapped();
  }

  /** True if `path` is one of those that flap, or touches one. */
  concerns(path: FieldPath): boolean {
    return this.#paths.some((flapping) => isWithin(path, flapping) || isWithin(flapping, path));
  }

  /** Milliseconds until the key may run; 0: now. */
  get waitMs(): number {
    return this.#isLifted ? 0 : Math.max(0, this.#dueMs - this.#clock.monotonic());
  }

  /** They have flapped once more: the next run comes later. */
  flapped(): void {
    this.#delayMs = backoffMs(DAMPING, this.#rung++);
    this.#dueMs = this.#clock.monotonic() + this.#delayMs;
    this.#cancel();
    this.#cancel = this.#clock.after(Math.max(SHORTEST_CALM_MS, 2 * this.#delayMs), this.#onCalm);
  }

  /** Something else is to be done: the next run may come at once, and the delays begin anew. */
  lift(): void {
    this.#isLifted = true;
    this.#rung = 0;
  }

  /** The key runs. */
  began(): void {
    if (this.#isLifted) this.#rung = 0;
    this.#isLifted = false;
  }

  end(): void {
    this.#cancel();
  }
}
