import type { KubernetesObject } from '../api/object.ts';
import { groupResourceOf } from '../api/resource.ts';
import type { Resource } from '../api/resource.ts';
import { noReflectorMetrics } from '../metrics/reflector-metrics.ts';
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
import { runAll } from '../util/runnable.ts';
import type { Runnable } from '../util/runnable.ts';
import { DeltaProcessor } from './delta-processor.ts';
import type { Entry } from './delta-processor.ts';
import { DeltaQueue } from './delta-queue.ts';
import type { Turn } from './delta-queue.ts';
import type { EventHandlerOptions, EventHandler, HandlerRegistration } from './event-handler.ts';
import { Indexer, NAMESPACE_INDEX, namespaceIndex } from './indexer.ts';
import type { IndexFunctions } from './indexer.ts';
import { TransformingSink } from './transform.ts';
import type { Transform } from './transform.ts';
import { LineBudget } from './line-budget.ts';
import { Listener, ResyncTimer } from './event-handler.ts';
import { IndexLister } from './lister.ts';
import type { Lister } from './lister.ts';
import type { ListerWatcher } from './lister-watcher.ts';
import type { Progress } from './progress.ts';
import { Reflector } from './reflector.ts';
import type { ReflectorOptions } from './reflector-options.ts';
import type { SharedInformer } from './shared-informer.ts';
import type { FailureLog } from './failure-log.ts';
import type { WatchListSupport } from './reflector-watch.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';

const INFORMER_OPTIONS: OptionNames<InformerOptions<KubernetesObject>> = {
  stallMs: true,
  quietMs: true,
  listTimeoutMs: true,
  streamPauseMs: true,
  streamTimeoutMs: true,
  pageSize: true,
  name: true,
  namespace: true,
  clock: true,
  log: true,
  random: true,
  metrics: true,
  watchList: true,
  transform: true,
  freeze: true,
  yieldTurn: true,
  troubles: true,
};

export type { EventHandlerOptions, EventHandler, HandlerRegistration } from './event-handler.ts';

/** Options of `Informer`. */
export interface InformerOptions<T extends KubernetesObject> extends ReflectorOptions {
  /**
   * What log lines and metrics call it.
   * @default the resource: `counts.demo.mark8s.io`
   */
  readonly name?: string;
  /**
   * The only namespace of which the source tells; what is written elsewhere is not waited for.
   * @default all there are
   */
  readonly namespace?: string | undefined;
  /** @default systemClock */
  readonly clock?: Clock;
  /** @default silentLogger */
  readonly log?: Logger;
  /**
   * Numbers in [0, 1), for jitter.
   * @default Math.random
   */
  readonly random?: () => number;
  readonly metrics?: ReflectorMetrics;
  /** Shared by the informers of one server. */
  readonly watchList?: WatchListSupport;
  /** The same: failures of one cause are one log line then. */
  readonly troubles?: FailureLog;
  /** Run once on each object before anyone sees it. It must bear seeing its own result. */
  readonly transform?: Transform<T>;
  /**
   * Freeze what is cached, so that whoever changes a shared object is thrown at. For tests.
   * @default false
   */
  readonly freeze?: boolean;
  /**
   * Lets the rest of the process run between two slices of work.
   * @default one turn of the event loop
   */
  readonly yieldTurn?: () => Promise<void>;
}

/**
 * A mirror of the objects of one resource in memory, and word of every change to them.
 *
 * - The store changes first, handlers hear second: a handler finds in the lister at least what it
 *   is being told. After a relist the store is replaced in one step; deletions are told first.
 * - Handlers are told one thing at a time, in the server's order. One that is added late is told of
 *   every object that is there, before anything else.
 * - No handler, transform or index function can harm the mirror or another handler by throwing.
 * - Long work, such as the first 20,000 objects, is done in slices between which the process
 *   breathes; the mirror stands still meanwhile.
 */
export class Informer<T extends KubernetesObject = KubernetesObject>
  implements Runnable, SharedInformer<T>
{
  readonly name: string;
  readonly resource: Resource<T>;
  readonly lister: Lister<T>;
  /** Where its objects come from: the two calls, for this resource and selection. */
  readonly source: ListerWatcher<T>;
  readonly #namespace: string | undefined;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #metrics: InformerMetrics;
  readonly #indexer: Indexer<T>;
  readonly #queue: DeltaQueue<Entry<T>>;
  readonly #processor: DeltaProcessor<T>;
  readonly #reflector: Reflector<T>;
  readonly #listeners = new Set<Listener<T>>();
  readonly #resync: ResyncTimer;
  readonly #synced = new Deferred();
  #hasSynced = false;
  /** A resync waits in the queue. */
  #resyncQueued = false;
  #life: 'new' | 'running' | 'stopped' = 'new';
  #startedMs = 0;

  constructor(resource: Resource<T>, source: ListerWatcher<T>, options: InformerOptions<T> = {}) {
    checkOptions(options, INFORMER_OPTIONS, 'Informer');
    const { name = groupResourceOf(resource), clock = systemClock, log = silentLogger } = options;
    const { random, watchList, troubles, yieldTurn, transform, freeze = false } = options;
    this.name = name;
    this.resource = resource;
    this.source = source;
    this.#namespace = options.namespace;
    this.#clock = clock;
    this.#log = log.with({ resource: name });
    const indexBudget = new LineBudget(clock);
    this.#indexer = new Indexer<T>(
      resource.namespaced ? { [NAMESPACE_INDEX]: namespaceIndex } : {},
      (error, index, key) => {
        this.#metrics.objectRefused();
        const held = indexBudget.take();
        if (held) this.#log.error(error, 'Could not index an object', { index, key, ...held });
      },
    );
    this.lister = new IndexLister(this.#indexer);
    this.#queue = new DeltaQueue(clock, {
      onBatch: (ms) => this.#metrics.processed(ms),
      ...(yieldTurn ? { yieldTurn } : {}),
    });
    this.#metrics = (options.metrics ?? noReflectorMetrics).informer(
      { name, group: resource.group, version: resource.version, resource: resource.plural },
      stateOf(this.#queue, this.#indexer, () => this.progress, clock),
    );
    this.#processor = new DeltaProcessor(this.#indexer, this.#listeners, {
      onSynced: () => this.#markSynced(),
      onHistoryLost: (loss) => {
        this.#metrics.historyLost();
        this.#log.info(
          'The server lost part of its history, for example by a restore of etcd; replaced the cache',
          { ...loss },
        );
      },
    });
    const sink = new TransformingSink({
      queue: this.#queue,
      indexer: this.#indexer,
      clock,
      log: this.#log,
      metrics: this.#metrics,
      transform,
      freeze,
    });
    const shared = { watchList, troubles };
    const deps = { source, sink, clock, log, random, metrics: this.#metrics, ...shared };
    this.#reflector = new Reflector(name, deps, options);
    this.#resync = new ResyncTimer(clock, this.#listeners, () => this.#queueResync());
    // Whoever awaits it hears of a rejection; that nobody does is no fault.
    this.#synced.promise.catch(() => undefined);
  }

  get hasSynced(): boolean {
    return this.#hasSynced;
  }

  get synced(): Promise<void> {
    return this.#synced.promise;
  }

  /** How far the store has come; moves with every change and bookmark, in order. */
  get lastSyncResourceVersion(): string {
    return this.#indexer.lastStoreSyncResourceVersion;
  }

  /** Signs of life of the connection to the server. */
  get progress(): Progress {
    return this.#reflector.progress;
  }

  get parts(): readonly Informer<T>[] {
    return [this];
  }

  within(namespace: string | undefined): Informer<T> | undefined {
    return this.#namespace === undefined || this.#namespace === namespace ? this : undefined;
  }

  /** True if the store shows everything up to `resourceVersion`: for reading one's own writes. */
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
      throw new Error(`Informer ${this.name} has stopped and takes no more handlers`);
    }
    const listener = new Listener<T>(handler, options, {
      clock: this.#clock,
      log: this.#log,
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
      void this.#queue.push({ type: 'joined', listener });
      this.#resync.arm();
    }
    return listener;
  }

  async run(signal: AbortSignal): Promise<void> {
    if (this.#life !== 'new') throw new Error(`Informer ${this.name} was run before`);
    this.#life = 'running';
    this.#startedMs = this.#clock.monotonic();
    this.#resync.arm();
    try {
      await runAll(
        [
          (signal) => this.#reflector.run(signal),
          (signal) =>
            this.#queue.consume((entry, turn) => this.#process(entry, turn, signal), signal),
        ],
        signal,
      );
    } finally {
      this.#life = 'stopped';
      this.#resync.stop();
      const reason = `Informer ${this.name} stopped before it had synced`;
      for (const listener of this.#listeners) listener.end(reason);
      if (!this.#hasSynced) this.#synced.reject(new Error(reason));
    }
  }

  #process(entry: Entry<T>, turn: Turn, signal: AbortSignal): Promise<void> | undefined {
    if (entry.type === 'resync') this.#resyncQueued = false;
    return this.#processor.process(entry, turn, signal);
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
  queue: DeltaQueue<Entry<T>>,
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
      // That the server has no such resource is a word of the server's too.
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
