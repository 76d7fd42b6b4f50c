import type { Clock } from './clock.ts';
import { sleepOn } from './clock.ts';

interface Timer {
  readonly dueMs: number;
  readonly order: number;
  readonly callback: () => void;
}

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
    const timer = { dueMs: this.#elapsedMs + Math.max(0, ms), order: this.#order++, callback };
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

  /** Advances wall clock and monotonic clock by `ms` and fires the timers that become due. */
  async advance(ms: number): Promise<void> {
    const targetMs = this.#elapsedMs + ms;
    await settle();
    for (let next = this.#next(); next && next.dueMs <= targetMs; next = this.#next()) {
      this.#elapsedMs = Math.max(this.#elapsedMs, next.dueMs);
      this.#timers.delete(next);
      next.callback();
      await settle();
    }
    this.#elapsedMs = targetMs;
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
