import { IndexedHeap } from './indexed-heap.ts';

interface Entry<V> {
  readonly value: V;
  readonly usedAt: number;
}

/** A map with at most `capacity` entries. A new entry replaces the least recently used one. */
export class LruMap<K, V> {
  readonly #capacity: number;
  readonly #entries = new IndexedHeap<K, Entry<V>>((a, b) => a.usedAt < b.usedAt);
  #uses = 0;

  constructor(capacity: number) {
    if (!Number.isSafeInteger(capacity) || capacity < 1) {
      throw new RangeError(`capacity must be a positive integer: got ${capacity}`);
    }
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Returns the value of `key` and marks it as used. */
  get(key: K): V | undefined {
    const entry = this.#entries.get(key);
    if (entry) this.set(key, entry.value);
    return entry?.value;
  }

  set(key: K, value: V): void {
    this.#entries.set(key, { value, usedAt: this.#uses++ });
    if (this.#entries.size > this.#capacity) this.#entries.pop();
  }
}
