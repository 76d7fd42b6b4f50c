import type { Clock } from '../util/clock.ts';
import { IndexedHeap } from '../util/indexed-heap.ts';

interface Delay {
  readonly dueMs: number;
  /** Orders keys with the same due time by arrival. */
  readonly order: number;
}

/** Keys with due times. Uses one timer, set to the earliest. */
export class DelayedKeys<K> {
  readonly #clock: Clock;
  readonly #onDue: (keys: readonly K[]) => void;
  readonly #delays = new IndexedHeap<K, Delay>(isEarlier);
  #timer: { readonly dueMs: number; readonly cancel: () => void } | undefined;
  #order = 0;

  /** @param onDue receives all due keys, which have been removed */
  constructor(clock: Clock, onDue: (keys: readonly K[]) => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  /** Sets the due time of `key`, as `Clock.monotonic()`. */
  set(key: K, dueMs: number): void {
    this.#delays.set(key, { dueMs, order: this.#order++ });
    this.#setTimer();
  }

  delete(key: K): void {
    if (this.#delays.delete(key)) this.#setTimer();
  }

  clear(): void {
    this.#delays.clear();
    this.#setTimer();
  }

  #setTimer(): void {
    const dueMs = this.#delays.peek()?.[1].dueMs;
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
    const due: K[] = [];
    for (let first = this.#delays.peek(); first; first = this.#delays.peek()) {
      if (first[1].dueMs > now) break;
      this.#delays.delete(first[0]);
      due.push(first[0]);
    }
    this.#setTimer();
    if (due.length > 0) this.#onDue(due);
  }
}

function isEarlier(a: Delay, b: Delay): boolean {
  return a.dueMs === b.dueMs ? a.order < b.order : a.dueMs < b.dueMs;
}
