import type { DeepReadonly, KubernetesObject } from '../api/object.ts';

/**
 * Told of every change of a cache, after the cache shows it. Handlers are synchronous: they note
 * what is to be done, usually by adding a key to a work queue, and return.
 */
export interface InformerHandler<T extends KubernetesObject> {
  /** `isInInitialList`: the object was there before this handler began to listen. */
  onAdd?(object: DeepReadonly<T>, isInInitialList: boolean): void;

  /**
   * Equal resourceVersions mean a resync. An object that was deleted and created anew while the
   * watch was down comes as an update to another `metadata.uid`.
   */
  onUpdate?(old: DeepReadonly<T>, object: DeepReadonly<T>): void;

  /**
   * `finalStateKnown`: `lastKnown` is the state in which it was deleted; otherwise the deletion was
   * noticed later, by a list, and `lastKnown` is what the cache had.
   */
  onDelete?(lastKnown: DeepReadonly<T>, finalStateKnown: boolean): void;
}

export interface HandlerOptions<T extends KubernetesObject = KubernetesObject> {
  /** What log lines call it. */
  readonly name?: string;
  /**
   * Which objects concern the handler; synchronous, and a function of the object alone. It hears of
   * no others: one that begins to concern it is added, one that ceases to is deleted.
   * @default all
   */
  readonly filter?: (object: DeepReadonly<T>) => boolean;
  /**
   * How often every object is handed over again as an update to itself, in milliseconds; at least
   * 1000. 0: never.
   * @default 0
   */
  readonly resyncPeriodMs?: number;
}

/** One handler's seat at an informer. */
export interface Registration {
  /** The handler has been told of everything that was there when it was added. Never goes back. */
  readonly hasSynced: boolean;
  /** Resolves when `hasSynced` becomes true; rejects if the seat is given up before. */
  readonly synced: Promise<void>;
  /**
   * Nothing more is delivered, not even what is under way: as handlers are synchronous, none of the
   * handler's methods is running or will be called once this returns, unless it is called by one of
   * them. To remove twice is to remove.
   */
  remove(): void;
}
