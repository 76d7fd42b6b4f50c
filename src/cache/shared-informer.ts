import type { KubernetesObject } from '../api/object.ts';
import type { Resource } from '../api/resource.ts';
import type { EventHandlerOptions, EventHandler, HandlerRegistration } from './event-handler.ts';
import type { IndexFunctions } from './indexer.ts';
import type { Lister } from './lister.ts';
import type { ListerWatcher } from './lister-watcher.ts';
import type { Progress } from './progress.ts';

/**
 * What handlers, listers and controllers know of an informer, wherever its objects come from: one
 * list and watch, or one for each of several namespaces.
 */
export interface SharedInformer<T extends KubernetesObject = KubernetesObject> {
  /** What log lines call it: `pods in a, b`. */
  readonly name: string;
  readonly resource: Resource<T>;
  readonly lister: Lister<T>;
  /** The store shows the whole initial state, and handlers were told. Never goes back to false. */
  readonly hasSynced: boolean;
  /** Resolves when `hasSynced` becomes true; rejects if the informer stops before. */
  readonly synced: Promise<void>;

  /**
   * What it consists of: itself, or an informer for each namespace. How far each has come is its
   * own: where one watch lags, the others do not.
   */
  readonly parts: readonly InformerView<T>[];

  /** The part that mirrors what is in `namespace`, if one does; absent: what is in none. */
  within(namespace: string | undefined): InformerView<T> | undefined;

  /**
   * Adds indexes, before the start or after; objects that are there already are filed at once.
   *
   * @throws {Error} if a name is taken
   */
  addIndexers(indexers: IndexFunctions<T>): void;

  /**
   * Adds a handler; the same one twice is two handlers.
   *
   * @throws {TypeError} if one of its methods is async
   * @throws {Error} if the informer has stopped
   */
  addHandler(handler: EventHandler<T>, options?: EventHandlerOptions<T>): HandlerRegistration;
}

/** One list and watch, and how far it has come. */
export interface InformerView<
  T extends KubernetesObject = KubernetesObject,
> extends SharedInformer<T> {
  /** Where its objects come from. */
  readonly source: ListerWatcher<T>;
  /** How far the store has come; moves with every change and bookmark, in order. */
  readonly lastSyncResourceVersion: string;
  /** Signs of life of the connection to the server. */
  readonly progress: Progress;
  /** True if the store shows everything up to `resourceVersion`: for reading one's own writes. */
  hasReached(resourceVersion: string): boolean;
  /**
   * `Clock.monotonic()` when the last quorum read began that the store was replaced by; -Infinity
   * before the first. The store shows every write that was answered before, unless the server has
   * lost it.
   */
  readonly quorumReadMs: number;
  /** Replaces the store by a quorum read, soon, instead of watching on from where it is. */
  relist(): void;
}
