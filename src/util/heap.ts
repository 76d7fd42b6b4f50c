/** An entry of a heap, which is in at most one heap. */
export interface HeapEntry {
  /** Position in the array of the heap; -1 if the entry is in none. Only the heap sets it. */
  heapIndex: number;
}

/**
 * A binary min-heap whose entries contain their position, so that any entry can be removed without a
 * search.
 *
 * | operation                | cost     |
 * | ------------------------ | -------- |
 * | peek                     | O(1)     |
 * | set, delete, pop         | O(log n) |
 */
export class Heap<T extends HeapEntry> {
  readonly #less: (a: T, b: T) => boolean;
  readonly #entries: T[] = [];

  /** @param less a strict weak order; equal entries are returned in any order */
  constructor(less: (a: T, b: T) => boolean) {
    this.#less = less;
  }

  get size(): number {
    return this.#entries.length;
  }

  /** Returns the smallest entry without removing it. */
  peek(): T | undefined {
    return this.#entries[0];
  }

  /** Inserts an entry, or moves it after its order has changed. */
  set(entry: T): void {
    if (entry.heapIndex === -1) {
      entry.heapIndex = this.#entries.length;
      this.#entries.push(entry);
    }
    this.#sink(this.#rise(entry.heapIndex, entry), entry);
  }

  /** Removes `entry`. Returns whether it was present. */
  delete(entry: T): boolean {
    const index = entry.heapIndex;
    if (index === -1) return false;
    entry.heapIndex = -1;
    const last = this.#entries.pop();
    if (last && last !== entry) this.#sink(this.#rise(index, last), last);
    return true;
  }

  /** Removes and returns the smallest entry. */
  pop(): T | undefined {
    const first = this.#entries[0];
    if (first) this.delete(first);
    return first;
  }

  clear(): void {
    for (const entry of this.#entries) entry.heapIndex = -1;
    this.#entries.length = 0;
  }

  #place(entry: T, index: number): void {
    this.#entries[index] = entry;
    entry.heapIndex = index;
  }

  /** Moves `entry` up from `start`. Returns its position. */
  #rise(start: number, entry: T): number {
    let index = start;
    while (index > 0) {
      const above = this.#entries[(index - 1) >> 1];
      if (!above || !this.#less(entry, above)) break;
      this.#place(above, index);
      index = (index - 1) >> 1;
    }
    this.#place(entry, index);
    return index;
  }

  /** Moves `entry` down from `start`. */
  #sink(start: number, entry: T): void {
    let index = start;
    for (;;) {
      let child = 2 * index + 1;
      let below = this.#entries[child];
      if (!below) break;
      const right = this.#entries[child + 1];
      if (right && this.#less(right, below)) {
        below = right;
        child++;
      }
      if (!this.#less(below, entry)) break;
      this.#place(below, index);
      index = child;
    }
    this.#place(entry, index);
  }
}
