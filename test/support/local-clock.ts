import type { Clock } from '../../src/util/clock.ts';
import { sleepOn } from '../../src/util/clock.ts';
import { Deferred } from '../../src/util/deferred.ts';

export interface LocalClockOptions {
  /**
   * Speed relative to the clock of the test cluster.
   * @default 1
   */
  readonly rate?: number;
  /**
   * Offset of its wall clock, in milliseconds.
   * @default 0
   */
  readonly offsetMs?: number;
}

/**
 * The clock of one of several machines, with its own offset and speed. Its process can be paused like with
 * SIGSTOP: time passes, but no timer fires until it is continued.
 */
export class LocalClock implements Clock {
  readonly #clock: Clock;
  readonly #rate: number;
  readonly #offsetMs: number;
  #paused: Deferred | undefined;
  readonly #overdue: (() => void)[] = [];

  constructor(clock: Clock, { rate = 1, offsetMs = 0 }: LocalClockOptions = {}) {
    this.#clock = clock;
    this.#rate = rate;
    this.#offsetMs = offsetMs;
  }

  now(): number {
    const drift = (this.#rate - 1) * this.#clock.monotonic();
    return Math.round(this.#clock.now() + this.#offsetMs + drift);
  }

  monotonic(): number {
    return this.#clock.monotonic() * this.#rate;
  }

  after(ms: number, callback: () => void): () => void {
    let isCancelled = false;
    const fire = () => {
      if (isCancelled) return;
      if (this.#paused) this.#overdue.push(fire);
      else callback();
    };
    const cancel = this.#clock.after(ms / this.#rate, fire);
    return () => {
      isCancelled = true;
      cancel();
    };
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleepOn(this, ms, signal);
  }

  get isPaused(): boolean {
    return this.#paused !== undefined;
  }

  pause(): void {
    this.#paused ??= new Deferred();
  }

  /** Fires the timers that became due during the pause, in their order. */
  resume(): void {
    this.#paused?.resolve();
    this.#paused = undefined;
    for (const fire of this.#overdue.splice(0)) fire();
  }

  /** Resolves when the process is not paused. Incoming data waits for it. */
  async awake(): Promise<void> {
    while (this.#paused) await this.#paused.promise;
  }
}
