import { LinkedList } from './linked-list.ts';
import type { Linked } from './linked-list.ts';

interface Entry<K, V> extends Linked<Entry<K, V>> {
  readonly key: K;
  value: V;
}

/** A map with at most `capacity` entries. A new entry replaces the least recently used one. */
export class LruMap<K, V> {
  readonly #capacity: number;
  readonly #entries = new Map<K, Entry<K, V>>();
  /** The least recently used entry comes first. */
  readonly #byUse = new LinkedList<Entry<K, V>>();

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
    if (entry) this.#use(entry);
    return entry?.value;
  }

  set(key: K, value: V): void {
    const known = this.#entries.get(key);
    if (known) {
      known.value = value;
      this.#use(known);
      return;
    }
    const oldest = this.#entries.size === this.#capacity ? this.#byUse.first : undefined;
    if (oldest) {
      this.#byUse.remove(oldest);
      this.#entries.delete(oldest.key);
    }
    const entry = { key, value, previous: undefined, next: undefined };
    this.#entries.set(key, entry);
    this.#byUse.append(entry);
  }

  #use(entry: Entry<K, V>): void {
    this.#byUse.remove(entry);
    this.#byUse.append(entry);
  }
}
