import type { Clock } from '../../src/util/clock.ts';
import { sleepOn } from '../../src/util/clock.ts';
import { Deferred } from '../../src/util/deferred.ts';

export interface LocalClockOptions {
  /**
   * Seconds it counts while the world's clock counts one.
   * @default 1
   */
  readonly rate?: number;
  /**
   * How far its time of day is ahead, in milliseconds.
   * @default 0
   */
  readonly offsetMs?: number;
}

/**
 * The clock of one machine of several in a virtual world: wrong in its own way. Its process can be
 * paused, as SIGSTOP does it: time goes on, and nothing happens until it is continued.
 */
export class LocalClock implements Clock {
  readonly #world: Clock;
  readonly #rate: number;
  readonly #offsetMs: number;
  #paused: Deferred | undefined;
  readonly #overdue: (() => void)[] = [];

  constructor(world: Clock, { rate = 1, offsetMs = 0 }: LocalClockOptions = {}) {
    this.#world = world;
    this.#rate = rate;
    this.#offsetMs = offsetMs;
  }

  now(): number {
    const drift = (this.#rate - 1) * this.#world.monotonic();
    return Math.round(this.#world.now() + this.#offsetMs + drift);
  }

  monotonic(): number {
    return this.#world.monotonic() * this.#rate;
  }

  after(ms: number, callback: () => void): () => void {
    let isCancelled = false;
    const fire = () => {
      if (isCancelled) return;
      if (this.#paused) this.#overdue.push(fire);
      else callback();
    };
    const cancel = this.#world.after(ms / this.#rate, fire);
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

  /** What fell due meanwhile happens now, in the order in which it was due. */
  resume(): void {
    this.#paused?.resolve();
    this.#paused = undefined;
    for (const fire of this.#overdue.splice(0)) fire();
  }

  /** Resolves when the process runs: what comes in from outside waits for that. */
  async awake(): Promise<void> {
    while (this.#paused) await this.#paused.promise;
  }
}
