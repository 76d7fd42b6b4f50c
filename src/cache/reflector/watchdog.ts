import type { Clock } from '../../util/clock.ts';

/**
 * Calls `onSilence` once, when `lastLifeMs` has not moved for `limitMs`. One timer that re-arms
 * itself: a sign of life costs nothing but the number it leaves behind.
 */
export class Watchdog {
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #lastLifeMs: () => number;
  readonly #onSilence: () => void;
  #cancel: () => void;

  /** @param lastLifeMs `Clock.monotonic()` of the last sign of life */
  constructor(clock: Clock, limitMs: number, lastLifeMs: () => number, onSilence: () => void) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#lastLifeMs = lastLifeMs;
    this.#onSilence = onSilence;
    this.#cancel = clock.after(limitMs, this.#check);
  }

  stop(): void {
    this.#cancel();
  }

  readonly #check = (): void => {
    const leftMs = this.#lastLifeMs() + this.#limitMs - this.#clock.monotonic();
    if (leftMs <= 0) this.#onSilence();
    else this.#cancel = this.#clock.after(leftMs, this.#check);
  };
}
