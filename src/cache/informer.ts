import type { KubernetesObject } from '../api/object.ts';
import { groupResourceOf } from '../api/resource.ts';
import type { Resource } from '../api/resource.ts';
import { noReflectorMetrics } from '../metrics/no-metrics.ts';
import type {
  InformerMetrics,
  InformerState,
  ReflectorMetrics,
} from '../metrics/reflector-metrics.ts';
import { systemClock } from '../util/clock.ts';
import type { Clock } from '../util/clock.ts';
import { Deferred } from '../util/deferred.ts';
import { silentLogger } from '../util/logger.ts';
import type { Logger } from '../util/logger.ts';
import { occurrenceFields, RateLimitedLog } from '../util/rate-limited-log.ts';
import { runAll } from '../util/runnable.ts';
import type { Runnable } from '../util/runnable.ts';
import { DeltaProcessor } from './delta-processor.ts';
import type { DeltaEntry } from './delta-processor.ts';
import { DeltaQueue } from './delta-queue.ts';
import type { TimeSlice } from './delta-queue.ts';
import { Listener, ResyncTimer } from './event-handler.ts';
import type { EventHandler, EventHandlerOptions, HandlerRegistration } from './event-handler.ts';
import type { FailureLog } from './failure-log.ts';
import { Indexer, NAMESPACE_INDEX, namespaceIndex } from './indexer.ts';
import type { IndexFunctions } from './indexer.ts';
import { IndexLister } from './lister.ts';
import type { Lister } from './lister.ts';
import type { ListerWatcher } from './lister-watcher.ts';
import type { Progress } from './progress.ts';
import { Reflector } from './reflector.ts';
import type { ReflectorOptions } from './reflector-options.ts';
import type { WatchListSupport } from './reflector-watch.ts';
import type { RelistSpread } from './relist-spread.ts';
import type { InformerView, SharedInformer } from './shared-informer.ts';
import { TransformingSink } from './delta-queue.ts';
import type { Transform } from './delta-queue.ts';

/** Options of {@link Informer}. */
export interface InformerOptions<
  T extends KubernetesObject = KubernetesObject,
> extends ReflectorOptions {
  /**
   * Name in log lines and metrics.
   * @default the resource: `counts.demo.mark8s.io`
   */
  readonly name?: string | undefined;
  /**
   * The namespace of the source. Writes to other namespaces never appear in this cache.
   * @default all namespaces
   */
  readonly namespace?: string | undefined;
  /**
   * Name of the cluster, before the name in log lines and metrics.
   * @default the program's own cluster, without a name
   */
  readonly cluster?: string | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
  /** @default silentLogger */
  readonly log?: Logger | undefined;
  /**
   * Returns numbers in [0, 1), for jitter.
   * @default Math.random
   */
  readonly random?: (() => number) | undefined;
  readonly metrics?: ReflectorMetrics | undefined;
  /** Shared by the informers of one server. */
  readonly watchList?: WatchListSupport | undefined;
  /** Shared by the informers of one server: failures of one cause are one log line. */
  readonly failureLog?: FailureLog | undefined;
  /** Shared by the informers of one server, whose watches can expire together. */
  readonly relistSpread?: RelistSpread | undefined;
  /**
   * Called after the cache was replaced by the state of a server that has lost its history. The argument
   * is the `quorumReadMs` before that.
   */
  readonly onHistoryLost?: ((lastQuorumReadMs: number) => void) | undefined;
  /** Applied once to each object before it is cached. Must be idempotent. */
  readonly transform?: Transform<T> | undefined;
  /**
   * Freezes cached objects, so that code that modifies one throws. For tests.
   * @default false
   */
  readonly freeze?: boolean | undefined;
  /**
   * Yields to the rest of the process between two time slices.
   * @default one turn of the event loop
   */
  readonly yieldTurn?: (() => Promise<void>) | undefined;
}

/**
 * Cache of one resource, with event handlers.
 *
 * - The store changes before handlers are called, so a handler finds at least the reported state in the
 *   lister. A relist replaces the store in one step; handlers receive its deletions first.
 * - Handlers receive one event at a time, in the server's order. A handler that is added late receives
 *   every cached object before other events.
 * - Errors of handlers, transforms and index functions affect neither the cache nor other handlers.
 * - Long work, such as an initial list of 20,000 objects, is done in time slices. Between two slices it
 *   yields to the event loop, and no delta is applied.
 */
export class Informer<T extends KubernetesObject = KubernetesObject>
  implements Runnable, SharedInformer<T>, InformerView<T>
{
  readonly name: string;
  readonly cluster: string | undefined;
  readonly resource: Resource<T>;
  readonly lister: Lister<T>;
  readonly source: ListerWatcher<T>;
  readonly #namespace: string | undefined;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #metrics: InformerMetrics;
  readonly #indexer: Indexer<T>;
  readonly #queue: DeltaQueue<DeltaEntry<T>>;
  readonly #processor: DeltaProcessor<T>;
  readonly #reflector: Reflector<T>;
  readonly #listeners = new Set<Listener<T>>();
  readonly #resync: ResyncTimer;
  /** Limits lines about single objects to ten a minute for each cause. */
  readonly #objectErrors: RateLimitedLog;
  readonly #synced = new Deferred();
  #hasSynced = false;
  /** A resync is in the queue. */
  #resyncQueued = false;
  #life: 'new' | 'running' | 'stopped' = 'new';
  #startedMs = 0;

  constructor(resource: Resource<T>, source: ListerWatcher<T>, options: InformerOptions<T> = {}) {
    const { clock = systemClock, log = silentLogger, cluster } = options;
    const { name: described = groupResourceOf(resource) } = options;
    const name = cluster === undefined ? described : `${cluster}/${described}`;
    const { random, watchList, failureLog, relistSpread } = options;
    const { yieldTurn, transform, freeze = false } = options;
    this.name = name;
    this.cluster = cluster;
    this.resource = resource;
    this.source = source;
    this.#namespace = options.namespace;
    this.#clock = clock;
    this.#log = log.with({ resource: name });
    const errors = new RateLimitedLog(clock, { burst: 10 });
    this.#objectErrors = errors;
    this.#indexer = new Indexer<T>(
      resource.namespaced ? { [NAMESPACE_INDEX]: namespaceIndex } : {},
      (error, index, key) => {
        this.#metrics.objectRefused();
        errors.report(`index\0${index}`, key, (seen) =>
          this.#log.error(error, 'Could not index an object', {
            index,
            ...occurrenceFields('key', 'keys', seen),
          }),
        );
      },
    );
    this.lister = new IndexLister(this.#indexer);
    this.#queue = new DeltaQueue(clock, {
      onBatch: (ms) => this.#metrics.processed(ms),
      yieldTurn,
    });
    this.#metrics = (options.metrics ?? noReflectorMetrics).informer(
      { name, group: resource.group, version: resource.version, resource: resource.plural },
      stateOf(this.#queue, this.#indexer, () => this.progress, clock),
    );
    this.#processor = new DeltaProcessor(this.#indexer, this.#listeners, {
      onSynced: () => this.#markSynced(),
      onHistoryLost: (loss, lastQuorumReadMs) => {
        this.#metrics.historyLost();
        this.#log.info(
          'The server lost part of its history, for example by a restore of etcd; replaced the cache',
          { ...loss },
        );
        options.onHistoryLost?.(lastQuorumReadMs);
      },
    });
    const sink = new TransformingSink({
      queue: this.#queue,
      indexer: this.#indexer,
      log: this.#log,
      errors,
      metrics: this.#metrics,
      transform,
      freeze,
    });
    const shared = { watchList, failureLog, relistSpread };
    const deps = { source, sink, clock, log, random, metrics: this.#metrics, ...shared };
    this.#reflector = new Reflector(name, deps, options);
    this.#resync = new ResyncTimer(clock, this.#listeners, () => this.#queueResync());
    // Prevents an unhandled rejection if no caller awaits `synced`.
    this.#synced.promise.catch(() => undefined);
  }

  get hasSynced(): boolean {
    return this.#hasSynced;
  }

  get synced(): Promise<void> {
    return this.#synced.promise;
  }

  get lastSyncResourceVersion(): string {
    return this.#indexer.lastStoreSyncResourceVersion;
  }

  get progress(): Progress {
    return this.#reflector.progress;
  }

  get parts(): readonly Informer<T>[] {
    return [this];
  }

  within(namespace: string | undefined): Informer<T> | undefined {
    return this.#namespace === undefined || this.#namespace === namespace ? this : undefined;
  }

  hasReached(resourceVersion: string): boolean {
    return this.#indexer.hasReached(resourceVersion);
  }

  get quorumReadMs(): number {
    return this.#processor.quorumReadMs;
  }

  /** Lists all objects again by a quorum read. */
  relist(): void {
    this.#reflector.relist();
  }

  addIndexers(indexers: IndexFunctions<T>): void {
    this.#indexer.addIndexers(indexers);
  }

  addHandler(handler: EventHandler<T>, options: EventHandlerOptions<T> = {}): HandlerRegistration {
    if (this.#life === 'stopped') {
      throw new Error(`Informer ${this.name} has stopped; it accepts no handlers`);
    }
    const listener = new Listener<T>(handler, options, {
      clock: this.#clock,
      log: this.#log,
      errors: this.#objectErrors,
      onFailure: () => this.#metrics.handlerFailed(),
      onRemove: () => {
        this.#listeners.delete(listener);
        if (this.#life === 'running') this.#resync.arm();
      },
    });
    this.#listeners.add(listener);
    if (this.#life === 'new') {
      listener.activate();
    } else {
      void this.#queue.push({ type: 'handlerAdded', listener });
      this.#resync.arm();
    }
    return listener;
  }

  async run(signal: AbortSignal): Promise<void> {
    if (this.#life !== 'new') throw new Error(`Informer ${this.name} can run only once`);
    this.#life = 'running';
    this.#startedMs = this.#clock.monotonic();
    this.#resync.arm();
    try {
      await runAll(
        [
          (signal) => this.#reflector.run(signal),
          (signal) =>
            this.#queue.consume((entry, slice) => this.#process(entry, slice, signal), signal),
        ],
        signal,
      );
    } finally {
      this.#life = 'stopped';
      this.#resync.stop();
      this.#objectErrors.flush();
      const reason = `Informer ${this.name} stopped before it had synced`;
      for (const listener of this.#listeners) listener.end(reason);
      if (!this.#hasSynced) this.#synced.reject(new Error(reason));
    }
  }

  #process(entry: DeltaEntry<T>, slice: TimeSlice, signal: AbortSignal): Promise<void> | undefined {
    if (entry.type === 'resync') this.#resyncQueued = false;
    return this.#processor.process(entry, slice, signal);
  }

  #queueResync(): void {
    if (this.#resyncQueued) return;
    this.#resyncQueued = true;
    void this.#queue.push({ type: 'resync' });
  }

  #markSynced(): void {
    this.#hasSynced = true;
    this.#log.v(2).info('Caches populated', {
      type: this.resource.kind,
      count: this.#indexer.size,
      tookMs: Math.round(this.#clock.monotonic() - this.#startedMs),
    });
    this.#synced.resolve();
  }
}

function stateOf<T extends KubernetesObject>(
  queue: DeltaQueue<DeltaEntry<T>>,
  indexer: Indexer<T>,
  progress: () => Progress,
  clock: Clock,
): InformerState {
  return {
    get queued() {
      return queue.length;
    },
    get objects() {
      return indexer.size;
    },
    get storeResourceVersion() {
      return indexer.lastStoreSyncResourceVersion;
    },
    get reflectorResourceVersion() {
      return progress().resourceVersion;
    },
    get inactiveMs() {
      // A response that the resource is not served is activity too.
      const { missing, inactiveMs } = progress();
      return missing ? 0 : inactiveMs;
    },
    get lastProgressMs() {
      const { lastEventMs, lastBookmarkMs, lastListMs } = progress();
      const times = [lastEventMs, lastBookmarkMs, lastListMs].filter((ms) => ms !== undefined);
      return times.length === 0
        ? undefined
        : clock.now() - clock.monotonic() + times.reduce((a, b) => Math.max(a, b));
    },
  };
}
