import type { KubernetesObject } from '../api/object.ts';
import type { Resource } from '../api/resource.ts';
import type { EventHandler, EventHandlerOptions, HandlerRegistration } from './event-handler.ts';
import type { IndexFunctions } from './indexer.ts';
import type { Lister } from './lister.ts';
import type { ListerWatcher } from './lister-watcher.ts';
import type { Progress } from './progress.ts';

/**
 * Cache of one resource with event handlers, shared by its users. Its objects come from one list and
 * watch, or from one for each of several namespaces.
 */
export interface SharedInformer<T extends KubernetesObject = KubernetesObject> {
  /** Name in log lines: `pods in a, b`. */
  readonly name: string;
  readonly resource: Resource<T>;
  /** Name of the cluster, if it is not the program's own. */
  readonly cluster?: string | undefined;
  readonly lister: Lister<T>;
  /** The cache contains the initial state, and handlers have received it. Never reset. */
  readonly hasSynced: boolean;
  /** Resolves when `hasSynced` becomes true; rejects if the informer stops first. */
  readonly synced: Promise<void>;

  /** The caches of which it consists: itself, or one for each namespace. */
  readonly parts: readonly InformerView<T>[];

  /** Returns the part that caches objects in `namespace`; undefined stands for cluster-scoped. */
  within(namespace: string | undefined): InformerView<T> | undefined;

  /**
   * Adds indexes, also after the start.
   *
   * @throws {Error} if an index of the same name exists
   */
  addIndexers(indexers: IndexFunctions<T>): void;

  /**
   * Adds a handler. A handler that is added twice receives each event twice.
   *
   * @throws {TypeError} if one of its methods is async
   * @throws {Error} if the informer has stopped
   */
  addHandler(handler: EventHandler<T>, options?: EventHandlerOptions<T>): HandlerRegistration;
}

/** State of the cache of one list and watch. */
export interface InformerView<T extends KubernetesObject = KubernetesObject> extends Pick<
  SharedInformer<T>,
  'name' | 'resource' | 'lister' | 'hasSynced' | 'synced'
> {
  /** List and watch of its objects. */
  readonly source: ListerWatcher<T>;
  /** The latest resourceVersion in the store; advances with every change and bookmark. */
  readonly lastSyncResourceVersion: string;
  /** Progress of its reflector. */
  readonly progress: Progress;
  /** Whether the store contains every change up to `resourceVersion`. For read-your-writes. */
  hasReached(resourceVersion: string): boolean;
  /**
   * Start of the last quorum read that replaced the store, as `Clock.monotonic()`; -Infinity before the
   * first. The store contains every write that was answered earlier, unless the server has lost it.
   */
  readonly quorumReadMs: number;
  /** Replaces the store by a quorum read, instead of watching from the last resourceVersion. */
  relist(): void;
}
