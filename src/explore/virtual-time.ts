import { sleepOn } from '../util/clock.ts';
import type { Clock } from '../util/clock.ts';
import { Heap } from '../util/heap.ts';

interface Timer {
  dueMs: number;
  order: number;
  readonly owner: string;
  readonly callback: () => void;
  heapIndex: number;
}

/** Wall-clock time at the start of each schedule. */
export const START_MS: number = Date.UTC(2026, 0, 1);

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

  /** Participants that are frozen, and until when. */
  readonly #frozen = new Map<string, number>();
  /** Milliseconds by which the wall clocks of participants differ. */
  readonly #offsets = new Map<string, number>();

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
    this.#frozen.clear();
    this.#offsets.clear();
  }

  /** Moves the wall clock of a participant, as NTP or a suspended machine does. */
  jump(owner: string, ms: number): void {
    this.#offsets.set(owner, (this.#offsets.get(owner) ?? 0) + ms);
  }

  /** Holds the timers of a participant, as SIGSTOP does. */
  freeze(owner: string, ms: number): void {
    this.#frozen.set(owner, this.#elapsedMs + ms);
    this.after('time', ms, () => this.#frozen.delete(owner));
  }

  isFrozen(owner: string): boolean {
    return this.#frozen.has(owner);
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
    const untilMs = this.#frozen.get(timer.owner);
    if (untilMs === undefined) return timer.callback();
    timer.dueMs = untilMs;
    timer.order = this.#order++;
    this.#timers.set(timer);
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
      now: () => START_MS + this.#elapsedMs + (this.#offsets.get(owner) ?? 0),
      monotonic: () => this.#elapsedMs,
      after: (ms, callback) => this.after(owner, ms, () => isAlive() && callback()),
      sleep: (ms, signal) => sleepOn(clock, ms, signal),
    };
    return clock;
  }
}
