import type { StoredObject } from './resource-definition.ts';
import { expired } from './status-error.ts';

/** One write to one object. */
export interface Change {
  /** The revision the write made. */
  readonly revision: number;
  /** The object as written; of a removal, its last state at the removal's revision. */
  readonly object: StoredObject;
  /** What was there before; absent if the write created the object. */
  readonly previous: StoredObject | undefined;
  readonly removed: boolean;
}

/** Told of each change at once, in order. `shared` lives for one change: work done once for all. */
export type ChangeListener = (change: Change, shared: Map<string, Uint8Array>) => void;

interface Subscription {
  readonly onChange: ChangeListener;
  readonly onEnd: () => void;
}

/**
 * The recent changes to the objects of one resource, oldest first, and those who follow them.
 *
 * It remembers at least the last `capacity` changes and never more than twice as many. What lies
 * before is compacted: nobody can resume from there, as with etcd.
 *
 *      compacted        the changes kept             now
 *   ───────┼────────●────────●──────────●────────●────┤
 *      resume from here, or from any later revision, works
 */
export class WatchHistory {
  readonly #capacity: number;
  readonly #changes: Change[] = [];
  readonly #subscriptions = new Set<Subscription>();
  #compacted: number;

  /**
   * @param capacity changes that are kept for sure
   * @param compacted the revision that the history begins after
   */
  constructor(capacity: number, compacted: number) {
    this.#capacity = capacity;
    this.#compacted = compacted;
  }

  /** The oldest revision that can be resumed from. */
  get compacted(): number {
    return this.#compacted;
  }

  /** Number of those who follow. */
  get followers(): number {
    return this.#subscriptions.size;
  }

  record(change: Change): void {
    this.#changes.push(change);
    if (this.#changes.length > 2 * this.#capacity) {
      const forgotten = this.#changes.splice(0, this.#changes.length - this.#capacity);
      this.#compacted = forgotten.at(-1)?.revision ?? this.#compacted;
    }
    const shared = new Map<string, Uint8Array>();
    for (const subscription of this.#subscriptions) subscription.onChange(change, shared);
  }

  /**
   * The changes after `revision`.
   *
   * @throws {StatusError} 410 if some of them are compacted
   */
  since(revision: number): readonly Change[] {
    if (revision < this.#compacted) {
      throw expired(`too old resource version: ${revision} (${this.#compacted})`);
    }
    return this.#changes.slice(this.#indexAfter(revision));
  }

  /** Follows every change from now on, until the returned function is called. */
  subscribe(onChange: ChangeListener, onEnd: () => void): () => void {
    const subscription = { onChange, onEnd };
    this.#subscriptions.add(subscription);
    return () => this.#subscriptions.delete(subscription);
  }

  /** Forgets all changes up to and including `revision`. */
  compact(revision: number): void {
    this.#changes.splice(0, this.#indexAfter(revision));
    this.#compacted = Math.max(this.#compacted, revision);
  }

  /** Forgets everything; the history begins again after `revision`, be it an older one. */
  restart(revision: number): void {
    this.#changes.length = 0;
    this.#compacted = revision;
    this.endSubscriptions();
  }

  /** Sends everyone who follows away. */
  endSubscriptions(): void {
    const ended = [...this.#subscriptions];
    this.#subscriptions.clear();
    for (const subscription of ended) subscription.onEnd();
  }

  /** Position of the first change after `revision`. */
  #indexAfter(revision: number): number {
    let low = 0;
    let high = this.#changes.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#changes[middle]?.revision ?? 0) <= revision) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
