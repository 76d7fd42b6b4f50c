import { equalJson } from '../api/equal.ts';
import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import { keyOf } from '../api/object-key.ts';
import type { ObjectKey } from '../api/object-key.ts';
import { isOlderResourceVersion } from '../api/resource-version.ts';
import { lazyTextOf } from '../client/lazy-object.ts';
import type { Delta, TimeSlice } from './delta-queue.ts';
import type { Listener } from './event-handler.ts';
import { hasSameVersion } from './indexer.ts';
import type { Indexer } from './indexer.ts';

/** Entry of an informer's queue: a delta, or a handler that was added after the start. */
export type DeltaEntry<T extends KubernetesObject> =
  Delta<DeepReadonly<T>> | { readonly type: 'handlerAdded'; readonly listener: Listener<T> };

/** Changes to the store when the server had lost its history. */
export interface HistoryLoss {
  /** The resourceVersions of the store before and after. */
  readonly from: string;
  readonly to: string;
  readonly added: number;
  readonly changed: number;
  readonly removed: number;
}

export interface DeltaProcessorEvents {
  /** Called when the store contains the initial state and listeners have received it. */
  readonly onSynced: () => void;
  /**
   * Called when the store was replaced by a state that cannot follow from it: one of an older
   * resourceVersion, or with objects of older resourceVersions that were not in the store.
   * `lastQuorumReadMs` is the start of the quorum read before this one, or -Infinity.
   */
  readonly onHistoryLost: (loss: HistoryLoss, lastQuorumReadMs: number) => void;
}

/**
 * Applies entries one at a time: first to the store, then to the listeners. Nothing else changes the
 * store or calls listeners, so none of them sees two changes at once.
 *
 * The events of listeners follow from the store. An object that was not in the store is an addition.
 * One that was in it is an update, unless its uid and resourceVersion are the same. After a quorum read
 * the content is compared too, because a restored server uses resourceVersions a second time.
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

  /** `Clock.monotonic()` of the start of the last quorum read that replaced the store. */
  get quorumReadMs(): number {
    return this.#quorumReadMs;
  }

  /** Returns a promise for work that may take long. It stops early when `signal` aborts. */
  process(entry: DeltaEntry<T>, slice: TimeSlice, signal: AbortSignal): Promise<void> | undefined {
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
        return this.#replace(entry, slice, signal);
      case 'resync':
        return this.#resync(slice, signal);
      case 'handlerAdded':
        return this.#addListener(entry.listener, slice, signal);
    }
  }

  #change(key: ObjectKey, object: DeepReadonly<T>, unordered = false): void {
    const old = this.#indexer.set(key, object);
    if (!unordered) this.#indexer.reached(object.metadata.resourceVersion);
    if (!old || !hasSameVersion(old, object)) this.#notify(old, object, false);
  }

  #delete(key: ObjectKey, lastKnown: DeepReadonly<T>): void {
    const known = this.#indexer.delete(key) !== undefined;
    this.#indexer.reached(lastKnown.metadata.resourceVersion);
    if (!known) return;
    for (const listener of this.#listeners) listener.delete(lastKnown, true);
  }

  async #replace(
    { objects, resourceVersion, quorumReadMs }: Extract<DeltaEntry<T>, { type: 'replaced' }>,
    slice: TimeSlice,
    signal: AbortSignal,
  ): Promise<void> {
    const next = new Map<ObjectKey, DeepReadonly<T>>();
    for (const object of objects) next.set(keyOf(object), object);
    const from = this.#indexer.lastStoreSyncResourceVersion;
    const isQuorumRead = quorumReadMs !== undefined;
    const { changed, removed } = this.#indexer.replace(next, resourceVersion, !isQuorumRead);
    const lastQuorumReadMs = this.#quorumReadMs;
    if (isQuorumRead) this.#quorumReadMs = quorumReadMs;
    let isHistoryLost = isOlderResourceVersion(resourceVersion, from);
    const difference = { from, to: resourceVersion, added: 0, changed: 0, removed: removed.length };
    for (const lastKnown of removed) {
      for (const listener of this.#listeners) listener.delete(lastKnown, false);
      const pause = slice.spend();
      if (pause) await pause;
      if (signal.aborted) return;
    }
    for (const { old, object } of changed) {
      const isSameVersion = old !== undefined && hasSameVersion(old, object);
      if (!isSameVersion || !hasSameContent(old, object)) {
        if (old) difference.changed++;
        else difference.added++;
        // The store contained everything up to `from`, but not this state. Content alone proves nothing: a
        // new default value changes what the server returns for a resourceVersion.
        const { resourceVersion } = object.metadata;
        isHistoryLost ||=
          !isSameVersion &&
          (resourceVersion === from || isOlderResourceVersion(resourceVersion, from));
        this.#notify(old, object, !this.#synced);
      }
      const pause = slice.spend();
      if (pause) await pause;
      if (signal.aborted) return;
    }
    if (isHistoryLost) this.#events.onHistoryLost(difference, lastQuorumReadMs);
    if (this.#synced) return;
    this.#synced = true;
    this.#events.onSynced();
    for (const listener of this.#listeners) listener.markSynced();
  }

  async #resync(slice: TimeSlice, signal: AbortSignal): Promise<void> {
    const due: Listener<T>[] = [];
    for (const listener of this.#listeners) {
      if (listener.resyncDue) due.push(listener);
      listener.resyncDue = false;
    }
    for (const object of this.#indexer.values()) {
      for (const listener of due) listener.update(object, object);
      const pause = slice.spend();
      if (pause) await pause;
      if (signal.aborted) return;
    }
  }

  async #addListener(listener: Listener<T>, slice: TimeSlice, signal: AbortSignal): Promise<void> {
    listener.activate();
    for (const object of this.#indexer.values()) {
      listener.add(object, true);
      const pause = slice.spend();
      if (pause) await pause;
      if (signal.aborted || listener.removed) return;
    }
    if (this.#synced) listener.markSynced();
  }

  #notify(old: DeepReadonly<T> | undefined, object: DeepReadonly<T>, initial: boolean): void {
    for (const listener of this.#listeners) {
      if (old === undefined) listener.add(object, initial);
      else listener.update(old, object);
    }
  }
}

/** Compares the texts of lazy fields if possible, because parsing costs more. */
function hasSameContent(
  old: DeepReadonly<KubernetesObject>,
  object: DeepReadonly<KubernetesObject>,
): boolean {
  const text = lazyTextOf(old);
  if (text === undefined || text !== lazyTextOf(object)) return equalJson(old, object);
  return equalJson(old.metadata, object.metadata);
}
