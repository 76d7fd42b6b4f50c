import type { Clock } from '../util/clock.ts';
import { Heap } from '../util/heap.ts';
import type { HeapEntry } from '../util/heap.ts';

/** A key with a due time. */
export interface DelayedKey extends HeapEntry {
  /** `Clock.monotonic()` when the key is due. Does not change while the key is delayed, except by `set`. */
  readyAtMs: number;
  /** Orders keys with the same due time. Only `DelayedKeys` sets it. */
  arrival: number;
}

/** Keys with due times. Uses one timer, set to the earliest. */
export class DelayedKeys<T extends DelayedKey> {
  readonly #clock: Clock;
  readonly #onDue: (items: readonly T[]) => void;
  readonly #delayed = new Heap<T>(isEarlier);
  #timer: { readonly dueMs: number; readonly cancel: () => void } | undefined;
  #arrivals = 0;

  /** @param onDue receives all due items, which have been removed */
  constructor(clock: Clock, onDue: (items: readonly T[]) => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  /** Sets the due time of `item`, as `Clock.monotonic()`. */
  set(item: T, dueMs: number): void {
    item.readyAtMs = dueMs;
    item.arrival = this.#arrivals++;
    this.#delayed.set(item);
    this.#setTimer();
  }

  delete(item: T): void {
    if (this.#delayed.delete(item)) this.#setTimer();
  }

  clear(): void {
    this.#delayed.clear();
    this.#setTimer();
  }

  #setTimer(): void {
    const dueMs = this.#delayed.peek()?.readyAtMs;
    if (dueMs === this.#timer?.dueMs) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    if (dueMs === undefined) return;
    const cancel = this.#clock.after(dueMs - this.#clock.monotonic(), () => this.#fire());
    this.#timer = { dueMs, cancel };
  }

  #fire(): void {
    this.#timer = undefined;
    const now = this.#clock.monotonic();
    const due: T[] = [];
    for (let first = this.#delayed.peek(); first; first = this.#delayed.peek()) {
      if (first.readyAtMs > now) break;
      this.#delayed.pop();
      due.push(first);
    }
    this.#setTimer();
    if (due.length > 0) this.#onDue(due);
  }
}

function isEarlier(a: DelayedKey, b: DelayedKey): boolean {
  return a.readyAtMs === b.readyAtMs ? a.arrival < b.arrival : a.readyAtMs < b.readyAtMs;
}
