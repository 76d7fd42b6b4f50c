import { sleepOn } from '../util/clock.ts';
import type { Clock } from '../util/clock.ts';
import { Heap } from '../util/heap.ts';

interface Timer {
  readonly dueMs: number;
  readonly order: number;
  readonly owner: string;
  readonly callback: () => void;
  heapIndex: number;
}

/** Wall-clock time at the start of each schedule. */
const START_MS = Date.UTC(2026, 0, 1);

/**
 * The time of one schedule, which advances only from one timer to the next. Each participant has its own clock of it, so
 * that a crash cancels the timers of one process.
 */
export class VirtualTime {
  #elapsedMs = 0;
  #order = 0;
  #timers = new Heap<Timer>(
    (a, b) => a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.order < b.order),
  );

  /** Milliseconds since the first schedule. */
  get elapsedMs(): number {
    return this.#elapsedMs;
  }

  /** Time of the next timer since the start, or undefined if there is none. */
  get nextDueMs(): number | undefined {
    return this.#timers.peek()?.dueMs;
  }

  /** Returns to a time, without timers. */
  reset(elapsedMs: number): void {
    this.#elapsedMs = elapsedMs;
    this.#order = 0;
    this.#timers.clear();
  }

  /** Owner of the next timer. */
  get nextOwner(): string | undefined {
    return this.#timers.peek()?.owner;
  }

  /** Advances to the next timer and calls it. */
  fireNext(): void {
    const timer = this.#timers.pop();
    if (!timer) return;
    this.#elapsedMs = Math.max(this.#elapsedMs, timer.dueMs);
    timer.callback();
  }

  /** Advances without a timer. */
  advanceTo(elapsedMs: number): void {
    this.#elapsedMs = Math.max(this.#elapsedMs, elapsedMs);
  }

  after(owner: string, ms: number, callback: () => void): () => void {
    const dueMs = this.#elapsedMs + Math.max(0, ms);
    const timer: Timer = { dueMs, order: this.#order++, owner, callback, heapIndex: -1 };
    this.#timers.set(timer);
    return () => void this.#timers.delete(timer);
  }

  /**
   * Returns a clock of this time.
   *
   * @param isAlive whether the owner still runs; otherwise its timers do nothing
   */
  clock(owner: string, isAlive: () => boolean = () => true): Clock {
    const clock: Clock = {
      now: () => START_MS + this.#elapsedMs,
      monotonic: () => this.#elapsedMs,
      after: (ms, callback) => this.after(owner, ms, () => isAlive() && callback()),
      sleep: (ms, signal) => sleepOn(clock, ms, signal),
    };
    return clock;
  }
}
