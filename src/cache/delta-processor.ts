import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import { keyOf } from '../api/object-key.ts';
import type { ObjectKey } from '../api/object-key.ts';
import { isOlderResourceVersion } from '../api/resource-version.ts';
import type { Delta, Turn } from './delta-queue.ts';
import type { Indexer } from './indexer.ts';
import type { Listener } from './event-handler.ts';

/** What an informer's queue holds: deltas, and handlers that came while it ran. */
export type Entry<T extends KubernetesObject> =
  Delta<DeepReadonly<T>> | { readonly type: 'joined'; readonly listener: Listener<T> };

/** How the store differs from what it was, after the server had lost its history. */
export interface HistoryLoss {
  /** The resourceVersions of the store, before and now. */
  readonly from: string;
  readonly to: string;
  readonly added: number;
  readonly changed: number;
  readonly removed: number;
}

export interface DeltaProcessorEvents {
  /** The first whole state is in the store, and listeners have heard of it. */
  readonly onSynced: () => void;
  /**
   * The store was replaced by a state that does not follow from what it was: one of an older
   * resourceVersion, or with objects at older resourceVersions than the store's, which it did not
   * have.
   */
  readonly onHistoryLost: (loss: HistoryLoss) => void;
}

/**
 * Applies entries: the store first, listeners second, always. It is alone in changing the store and
 * in calling listeners, and does one entry at a time, so that none sees two things at once.
 *
 * What listeners hear follows from the store, not from the event: what the store did not have is an
 * addition, what it had is an update, unless the resourceVersion is the same.
 */
export class DeltaProcessor<T extends KubernetesObject> {
  readonly #indexer: Indexer<T>;
  readonly #listeners: ReadonlySet<Listener<T>>;
  readonly #events: DeltaProcessorEvents;
  #synced = false;
  #quorumReadMs = -Infinity;

  constructor(
    indexer: Indexer<T>,
    listeners: ReadonlySet<Listener<T>>,
    events: DeltaProcessorEvents,
  ) {
    this.#indexer = indexer;
    this.#listeners = listeners;
    this.#events = events;
  }

  /** `Clock.monotonic()` when the last quorum read began that the store was replaced by. */
  get quorumReadMs(): number {
    return this.#quorumReadMs;
  }

  /** Returns a promise for what may take long; when `signal` aborts, the rest is left undone. */
  process(entry: Entry<T>, turn: Turn, signal: AbortSignal): Promise<void> | undefined {
    switch (entry.type) {
      case 'changed':
        this.#change(entry.key, entry.object, entry.unordered);
        return undefined;
      case 'deleted':
        this.#delete(entry.key, entry.lastKnown);
        return undefined;
      case 'synced':
        this.#indexer.reached(entry.resourceVersion);
        return undefined;
      case 'replaced':
        return this.#replace(entry, turn, signal);
      case 'resync':
        return this.#resync(turn, signal);
      case 'joined':
        return this.#join(entry.listener, turn, signal);
    }
  }

  #change(key: ObjectKey, object: DeepReadonly<T>, unordered = false): void {
    const old = this.#indexer.get(key);
    this.#indexer.set(key, object);
    if (!unordered) this.#indexer.reached(object.metadata.resourceVersion);
    this.#tell(old, object, false);
  }

  #delete(key: ObjectKey, lastKnown: DeepReadonly<T>): void {
    const known = this.#indexer.delete(key) !== undefined;
    this.#indexer.reached(lastKnown.metadata.resourceVersion);
    if (!known) return;
    for (const listener of this.#listeners) listener.delete(lastKnown, true);
  }

  async #replace(
    { objects, resourceVersion, quorumReadMs }: Extract<Entry<T>, { type: 'replaced' }>,
    turn: Turn,
    signal: AbortSignal,
  ): Promise<void> {
    const next = new Map<ObjectKey, DeepReadonly<T>>();
    for (const object of objects) next.set(keyOf(object), object);
    const from = this.#indexer.lastStoreSyncResourceVersion;
    const previous = this.#indexer.replace(next, resourceVersion);
    if (quorumReadMs !== undefined) this.#quorumReadMs = quorumReadMs;
    let isHistoryLost = isOlderResourceVersion(resourceVersion, from);
    const difference = { from, to: resourceVersion, added: 0, changed: 0, removed: 0 };
    for (const [key, lastKnown] of previous) {
      if (next.has(key)) continue;
      difference.removed++;
      for (const listener of this.#listeners) listener.delete(lastKnown, false);
      const rest = turn.spend();
      if (rest) await rest;
      if (signal.aborted) return;
    }
    for (const [key, object] of next) {
      const old = previous.get(key);
      const { resourceVersion } = object.metadata;
      if (old?.metadata.resourceVersion !== resourceVersion) {
        if (old) difference.changed++;
        else difference.added++;
        // The store had everything up to `from`, and this was not in it.
        isHistoryLost ||= resourceVersion === from || isOlderResourceVersion(resourceVersion, from);
      }
      this.#tell(old, object, !this.#synced);
      const rest = turn.spend();
      if (rest) await rest;
      if (signal.aborted) return;
    }
    if (isHistoryLost) this.#events.onHistoryLost(difference);
    if (this.#synced) return;
    this.#synced = true;
    this.#events.onSynced();
    for (const listener of this.#listeners) listener.markSynced();
  }

  async #resync(turn: Turn, signal: AbortSignal): Promise<void> {
    const due: Listener<T>[] = [];
    for (const listener of this.#listeners) {
      if (listener.resyncDue) due.push(listener);
      listener.resyncDue = false;
    }
    for (const object of this.#indexer.values()) {
      for (const listener of due) listener.update(object, object);
      const rest = turn.spend();
      if (rest) await rest;
      if (signal.aborted) return;
    }
  }

  async #join(listener: Listener<T>, turn: Turn, signal: AbortSignal): Promise<void> {
    listener.activate();
    for (const object of this.#indexer.values()) {
      listener.add(object, true);
      const rest = turn.spend();
      if (rest) await rest;
      if (signal.aborted || listener.removed) return;
    }
    if (this.#synced) listener.markSynced();
  }

  #tell(old: DeepReadonly<T> | undefined, object: DeepReadonly<T>, initial: boolean): void {
    if (old === undefined) {
      for (const listener of this.#listeners) listener.add(object, initial);
    } else if (old.metadata.resourceVersion !== object.metadata.resourceVersion) {
      for (const listener of this.#listeners) listener.update(old, object);
    }
  }
}
