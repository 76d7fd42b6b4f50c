import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import type { ObjectKey } from '../api/object-key.ts';
import type { Resource } from '../api/resource.ts';
import type { HandlerRegistration } from '../cache/event-handler.ts';
import type { SharedInformer } from '../cache/shared-informer.ts';
import { LOW_PRIORITY } from '../workqueue/work-queue.ts';
import type { WatchesOptions } from './controller-options.ts';
import { allKeys, enqueue, mapToOwner } from './enqueue.ts';
import type { KeySink, MapFunction } from './enqueue.ts';
import { predicates } from './predicate.ts';

/** Observes the informers of the cluster that the syncs write to. */
export interface WatchObserver {
  /** Called once for each informer. */
  watched?(informer: SharedInformer, isReconciled: boolean): void;
  /** Called for each change that enqueues `key`, before the key is enqueued; see `EnqueueOptions.onChange`. */
  changed?(
    key: ObjectKey,
    resource: Resource,
    before: DeepReadonly<KubernetesObject> | undefined,
    after: DeepReadonly<KubernetesObject> | undefined,
  ): void;
}

/** Dependencies of `ControllerWatches`. */
export interface ControllerWatchesDeps {
  /** Name of the controller. */
  readonly name: string;
  /** Name of the cluster that the syncs write to; undefined for the program's own. */
  readonly cluster: string | undefined;
  readonly resyncPeriodMs: number | undefined;
  readonly queue: KeySink;
  /** Whether causes are detailed now. */
  readonly isDetailed: () => boolean;
  readonly observers: readonly WatchObserver[];
}

/** The informers of a controller, and the keys that changes of their objects enqueue. */
export class ControllerWatches {
  readonly #deps: ControllerWatchesDeps;
  readonly #informers = new Set<SharedInformer>();
  readonly #registrations: HandlerRegistration[] = [];
  /** One function for each watch: enqueues the selected keys of its objects. */
  readonly #requeues: ((isWanted: (key: ObjectKey) => boolean, cause: string) => void)[] = [];
  #reconciled: SharedInformer | undefined;
  /** Maps an object to its controller owner of the reconciled kind. */
  #ownerOf: MapFunction | undefined;

  constructor(deps: ControllerWatchesDeps) {
    this.#deps = deps;
  }

  /** Informer of the reconciled kind; undefined before `setReconciled`. */
  get reconciled(): SharedInformer | undefined {
    return this.#reconciled;
  }

  get informers(): readonly SharedInformer[] {
    return [...this.#informers];
  }

  /** True once every informer has synced and its handler has seen the initial objects. */
  get hasSynced(): boolean {
    return this.#registrations.every(({ hasSynced }) => hasSynced);
  }

  /** Resolves when `hasSynced` is true. */
  async synced(): Promise<void> {
    await Promise.all(this.#registrations.map(({ synced }) => synced));
  }

  /** Sets the informer of the reconciled kind, before it is added. */
  setReconciled(informer: SharedInformer): void {
    this.#reconciled = informer;
    this.#ownerOf = mapToOwner(informer.resource);
  }

  /** Enqueues the keys that `map` returns for each changed object. */
  add<T extends KubernetesObject>(
    informer: SharedInformer<T>,
    map: MapFunction<T>,
    options: WatchesOptions<T>,
  ): void {
    const { name, cluster, resyncPeriodMs = 0, queue, isDetailed, observers } = this.#deps;
    const { resource } = informer;
    const predicate = predicates.and(...(options.predicates ?? []));
    const isObserved = informer.cluster === cluster;
    if (isObserved) {
      const isReconciled = informer === this.#reconciled;
      for (const observer of observers) observer.watched?.(informer, isReconciled);
    }
    this.#informers.add(informer);
    const handler = enqueue(resource, queue, map, {
      predicates: [predicate],
      detailed: isDetailed,
      isOwned: (key, object) => this.#ownerOf?.(object) === key,
      onChange: isObserved
        ? (key, before, after) => {
            for (const observer of observers) observer.changed?.(key, resource, before, after);
          }
        : undefined,
    });
    this.#registrations.push(informer.addHandler(handler, { name, resyncPeriodMs }));
    this.#requeues.push((isWanted, cause) => {
      for (const object of informer.lister.list()) {
        if (!predicate.create(object, true)) continue;
        for (const key of allKeys(map, object)) {
          if (isWanted(key)) queue.add(key, { priority: LOW_PRIORITY, cause });
        }
      }
    });
  }

  /** Enqueues the selected keys of all cached objects, as after the first list. */
  requeue(isWanted: (key: ObjectKey) => boolean, cause: string): void {
    for (const requeue of this.#requeues) requeue(isWanted, cause);
  }
}
