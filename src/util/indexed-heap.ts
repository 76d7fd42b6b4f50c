/**
 * A binary min-heap with access to its entries by key.
 *
 * | operation         | cost     |
 * | ----------------- | -------- |
 * | has, get, peek    | O(1)     |
 * | set, delete, pop  | O(log n) |
 */
export class IndexedHeap<K, V> {
  readonly #less: (a: V, b: V) => boolean;
  readonly #entries: [key: K, value: V][] = [];
  /** Position of each key in `#entries`. */
  readonly #positions = new Map<K, number>();

  /** @param less a strict weak order; equal entries are returned in any order */
  constructor(less: (a: V, b: V) => boolean) {
    this.#less = less;
  }

  get size(): number {
    return this.#entries.length;
  }

  has(key: K): boolean {
    return this.#positions.has(key);
  }

  get(key: K): V | undefined {
    const position = this.#positions.get(key);
    return position === undefined ? undefined : this.#entries[position]?.[1];
  }

  /** Returns the smallest entry without removing it. */
  peek(): readonly [key: K, value: V] | undefined {
    return this.#entries[0];
  }

  /** Inserts or updates the entry of `key`. */
  set(key: K, value: V): void {
    const entry: [K, V] = [key, value];
    const position = this.#positions.get(key) ?? this.#entries.length;
    this.#place(entry, position);
    this.#sink(this.#rise(position));
  }

  /** Removes `key`. Returns whether it was present. */
  delete(key: K): boolean {
    const position = this.#positions.get(key);
    if (position === undefined) return false;
    this.#positions.delete(key);
    const last = this.#entries.pop();
    if (last && position < this.#entries.length) {
      this.#place(last, position);
      this.#sink(this.#rise(position));
    }
    return true;
  }

  /** Removes and returns the smallest entry. */
  pop(): readonly [key: K, value: V] | undefined {
    const first = this.#entries[0];
    if (first) this.delete(first[0]);
    return first;
  }

  clear(): void {
    this.#entries.length = 0;
    this.#positions.clear();
  }

  *[Symbol.iterator](): IterableIterator<readonly [key: K, value: V]> {
    yield* this.#entries;
  }

  #place(entry: [K, V], position: number): void {
    this.#entries[position] = entry;
    this.#positions.set(entry[0], position);
  }

  #rise(start: number): number {
    let position = start;
    const entry = this.#at(position);
    while (position > 0) {
      const parent = (position - 1) >> 1;
      const above = this.#at(parent);
      if (!this.#less(entry[1], above[1])) break;
      this.#place(above, position);
      position = parent;
    }
    this.#place(entry, position);
    return position;
  }

  #sink(start: number): void {
    let position = start;
    const entry = this.#at(position);
    for (;;) {
      let child = 2 * position + 1;
      if (child >= this.#entries.length) break;
      const right = child + 1;
      if (right < this.#entries.length && this.#less(this.#at(right)[1], this.#at(child)[1])) {
        child = right;
      }
      const below = this.#at(child);
      if (!this.#less(below[1], entry[1])) break;
      this.#place(below, position);
      position = child;
    }
    this.#place(entry, position);
  }

  #at(position: number): [K, V] {
    const entry = this.#entries[position];
    if (!entry) throw new RangeError(`No heap entry at ${position}`);
    return entry;
  }
}
