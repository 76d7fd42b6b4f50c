import type { HistoryBudget } from './history-budget.ts';
import { bytesOf } from './history-budget.ts';
import type { StoredObject } from '../objects/resource-definition.ts';
import { expired } from '../objects/status-error.ts';

/** One write to one object. */
export interface Change {
  /** The revision the write made. */
  readonly revision: number;
  /** The object as written; for a removal, its last state with the revision of the removal. */
  readonly object: StoredObject;
  /** The previous state; absent if the write created the object. */
  readonly previous: StoredObject | undefined;
  readonly removed: boolean;
}

/** A subscriber of a history. Callbacks run synchronously, in the order of the changes. */
export interface Follower {
  readonly onChange?: (change: Change) => void;
  /**
   * The changes up to and including `revision` were dropped to save memory. A subscriber that still
   * holds them, or objects that they replaced, releases them.
   */
  readonly onForgotten: (revision: number) => void;
  /** There are no more changes. */
  readonly onEnd?: () => void;
}

/** A change, and the memory that keeping it costs. */
interface Kept {
  readonly change: Change;
  readonly bytes: number;
}

/**
 * The recent changes to the objects of one resource, oldest first, and their subscribers.
 *
 * It keeps at least the last `capacity` changes and at most twice as many, or fewer if the memory that it
 * shares with other histories is exhausted. Earlier changes are compacted: no watch can resume from
 * there, as with etcd.
 *
 *      compacted        the changes kept             now
 *   ───────┼────────●────────●──────────●────────●────┤
 *      resume from here, or from any later revision, works
 */
export class WatchHistory {
  readonly #capacity: number;
  readonly #budget: HistoryBudget;
  readonly #kept: Kept[] = [];
  readonly #followers = new Set<Follower>();
  #compacted: number;
  #bytes = 0;

  /**
   * @param capacity changes that are kept if there is memory for them
   * @param compacted the revision after which the history starts
   * @param budget the memory budget that this history shares with others
   */
  constructor(capacity: number, compacted: number, budget: HistoryBudget) {
    this.#capacity = capacity;
    this.#compacted = compacted;
    this.#budget = budget;
    budget.join(this);
  }

  /** Approximate memory of the changes without the objects in the store, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The oldest revision that can be resumed from. */
  get compacted(): number {
    return this.#compacted;
  }

  get followers(): number {
    return this.#followers.size;
  }

  record(change: Change): void {
    const bytes = bytesOf(change);
    this.#kept.push({ change, bytes });
    this.#bytes += bytes;
    if (this.#kept.length > 2 * this.#capacity) this.#forget(this.#kept.length - this.#capacity);
    this.#budget.charge(bytes);
    for (const { onChange } of this.#followers) onChange?.(change);
  }

  /** Replaces the objects of all changes by the result of `read`. */
  reinterpret(read: (object: StoredObject) => StoredObject): void {
    for (const [index, { change, bytes }] of this.#kept.entries()) {
      const object = read(change.object);
      const previous = change.previous && read(change.previous);
      this.#kept[index] = { change: { ...change, object, previous }, bytes };
    }
  }

  /** Drops the oldest changes until `bytes` are released; keeps the newest one. */
  forgetOldest(bytes: number): boolean {
    let count = 0;
    for (let freed = 0; freed < bytes && count < this.#kept.length - 1; count++) {
      freed += this.#kept[count]?.bytes ?? 0;
    }
    if (count > 0) this.#forget(count);
    return count > 0;
  }

  /**
   * Returns the changes after `revision`.
   *
   * @throws {StatusError} 410 if some of them are compacted
   */
  since(revision: number): readonly Change[] {
    if (revision < this.#compacted) {
      throw expired(`too old resource version: ${revision} (${this.#compacted})`);
    }
    return this.#kept.slice(this.#indexAfter(revision)).map(({ change }) => change);
  }

  /** Subscribes to every later change, until the returned function is called. */
  follow(follower: Follower): () => void {
    this.#followers.add(follower);
    return () => this.#followers.delete(follower);
  }

  /** Drops all changes up to and including `revision`. */
  compact(revision: number): void {
    this.#drop(this.#indexAfter(revision));
    this.#compacted = Math.max(this.#compacted, revision);
  }

  /** Drops all changes. The history starts after `revision`, which can be an older one. */
  restart(revision: number): void {
    this.#drop(this.#kept.length);
    this.#compacted = revision;
    this.endFollowers();
  }

  endFollowers(): void {
    const ended = [...this.#followers];
    this.#followers.clear();
    for (const { onEnd } of ended) onEnd?.();
  }

  #forget(count: number): void {
    this.#compacted = this.#drop(count) ?? this.#compacted;
    for (const { onForgotten } of this.#followers) onForgotten(this.#compacted);
  }

  /** Returns the revision of the last change that was dropped. */
  #drop(count: number): number | undefined {
    const dropped = this.#kept.splice(0, count);
    const bytes = dropped.reduce((total, kept) => total + kept.bytes, 0);
    this.#bytes -= bytes;
    this.#budget.charge(-bytes);
    return dropped.at(-1)?.change.revision;
  }

  /** Position of the first change after `revision`. */
  #indexAfter(revision: number): number {
    let low = 0;
    let high = this.#kept.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#kept[middle]?.change.revision ?? 0) <= revision) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
