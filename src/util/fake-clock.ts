import { ActivityWatch } from './activity-watch.ts';
import type { Activity, Clock } from './clock.ts';
import { sleepOn } from './clock.ts';

interface Timer {
  /** Time at which it was set. */
  readonly setMs: number;
  readonly dueMs: number;
  readonly order: number;
  readonly callback: () => void;
}

/** Number of timers that are set and due at one instant, which makes a loop. */
const MAX_TIMERS = 10_000;

/**
 * A clock with virtual time, which only `advance` moves. Timers fire in the order of their due times, then
 * of registration. Between two timers all pending callbacks run, so a chain of sleeps behaves as in real
 * time.
 *
 * @example
 * ```ts
 * import { FakeClock } from 'crd-controller/testing';
 *
 * const clock = new FakeClock();
 * const slept = clock.sleep(3_600_000).then(() => console.log('an hour later')); // prints: an hour later
 * await clock.advance(3_600_000);
 * await slept;
 * ```
 */
export class FakeClock implements Clock {
  #elapsedMs = 0;
  #wallOffsetMs: number;
  #order = 0;
  readonly #timers = new Set<Timer>();
  readonly #activities = new ActivityWatch();
  #isAdvancing = false;

  /** @param startMs wall-clock time at the start, in milliseconds since the Unix epoch */
  constructor(startMs: number = Date.UTC(2026, 0, 1)) {
    this.#wallOffsetMs = startMs;
  }

  now(): number {
    return this.#wallOffsetMs + this.#elapsedMs;
  }

  monotonic(): number {
    return this.#elapsedMs;
  }

  after(ms: number, callback: () => void): () => void {
    const setMs = this.#elapsedMs;
    const timer = { setMs, dueMs: setMs + Math.max(0, ms), order: this.#order++, callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleepOn(this, ms, signal);
  }

  /** Number of timers that have not fired and were not cancelled. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Milliseconds until the next timer is due, or undefined if there is none. */
  get untilNext(): number | undefined {
    const next = this.#next();
    return next && next.dueMs - this.#elapsedMs;
  }

  /**
   * Advances wall clock and monotonic clock by `ms` and fires the timers that become due.
   *
   * @throws {Error} if no time passes, because a key is synced, or a request or a timer is repeated, without end. It names
   * the controller, the key and its causes. The syncs continue in the next call
   */
  async advance(ms: number): Promise<void> {
    const targetMs = this.#elapsedMs + ms;
    this.#isAdvancing = true;
    try {
      this.#activities.reset();
      await this.#settle();
      let timers = 0;
      for (let next = this.#next(); next && next.dueMs <= targetMs; next = this.#next()) {
        if (next.dueMs > this.#elapsedMs) {
          this.#elapsedMs = next.dueMs;
          this.#activities.reset();
          timers = 0;
        }
        this.#timers.delete(next);
        if (next.setMs === this.#elapsedMs && ++timers > MAX_TIMERS) {
          throw this.#stuck(`  ${timers} timers were set without a delay`);
        }
        next.callback();
        await this.#settle();
      }
      this.#elapsedMs = targetMs;
    } finally {
      this.#isAdvancing = false;
    }
  }

  active(activity: Activity): Promise<void> | undefined {
    return this.#activities.add(activity, this.#isAdvancing);
  }

  async #settle(): Promise<void> {
    let count: number;
    do {
      ({ count } = this.#activities);
      await settle();
      const { loop } = this.#activities;
      if (loop !== undefined) throw this.#stuck(loop);
    } while (count !== this.#activities.count);
  }

  #stuck(loop: string): Error {
    const time = new Date(this.now()).toISOString();
    return new Error(`FakeClock.advance: time stays at ${time}, because of a loop:\n${loop}`);
  }

  /** Moves only the wall clock by `ms`, as NTP or an administrator would. Timers are not affected. */
  jump(ms: number): void {
    this.#wallOffsetMs += ms;
  }

  #next(): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) {
      if (
        !first ||
        timer.dueMs < first.dueMs ||
        (timer.dueMs === first.dueMs && timer.order < first.order)
      ) {
        first = timer;
      }
    }
    return first;
  }
}

/**
 * Runs all ready promise reactions and `setImmediate` callbacks, and those that become ready meanwhile, in
 * at most `turns` turns of the event loop. Does not wait for I/O.
 */
export async function settle(turns: number = 100): Promise<void> {
  for (let turn = 0; turn < turns; turn++) {
    await new Promise((resolve) => setImmediate(resolve));
    if (!process.getActiveResourcesInfo().includes('Immediate')) return;
  }
}
