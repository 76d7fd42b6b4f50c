import type { KubernetesObject } from '../api/object.ts';
import { keyOf, splitKey } from '../api/object-key.ts';
import type { ObjectKey } from '../api/object-key.ts';
import type { Resource } from '../api/resource.ts';
import type { SharedInformer } from '../cache/shared-informer.ts';
import { noReconcileMetrics } from '../metrics/no-metrics.ts';
import { settledBeforeAbort } from '../util/abort.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';
import type { Logger } from '../util/logger.ts';
import { runAll } from '../util/runnable.ts';
import type { Runnable } from '../util/runnable.ts';
import { WorkQueue } from '../workqueue/work-queue.ts';
import { WorkerPool } from '../workqueue/worker-pool.ts';
import { WallClockKeys } from './clock-jumps.ts';
import type {
  ControllerDeps,
  ControllerOptions,
  OwnedWatches,
  OwnsOptions,
  Source,
  SourceOptions,
  WatchesOptions,
} from './controller-options.ts';
import { DEFAULT_CONCURRENCY } from './controller-options.ts';
import { ControllerWatches } from './controller-watches.ts';
import { allKeys, mapToOwner } from './enqueue.ts';
import type { KeySink, MapFunction } from './enqueue.ts';
import { HotLoopGate } from './hot-loop-gate.ts';
import type { HotLoop } from './hot-loop/written-object.ts';
import { KeyOwnership, serveShards } from './key-ownership.ts';
import { PendingWrites } from './read-your-writes.ts';
import { restartingSource } from './restarting-source.ts';
import { minBackoffAfter, QuietConflicts } from './sync-failures.ts';
import { SyncLog } from './sync-log.ts';
import { SyncPipeline } from './sync-pipeline.ts';
import { SyncTracer } from './tracing.ts';

const CONTROLLER_OPTIONS: OptionNames<ControllerOptions> = {
  name: true,
  kind: true,
  sync: true,
  concurrency: true,
  syncTimeoutMs: true,
  maxRetries: true,
  rateLimiter: true,
};

const OWNS_OPTIONS: OptionNames<OwnsOptions<KubernetesObject>> = {
  predicates: true,
  orNamed: true,
};
const { orNamed: _, ...WATCH_OPTIONS } = OWNS_OPTIONS;

/**
 * Connects informers, a work queue, workers and a sync handler.
 *
 * No key is synced before all informers have synced and their handlers received the initial objects,
 * nor while a cache does not contain the writes of the key's previous sync. A key that enqueues itself
 * again and again is slowed down (see `HotLoopDetector`). When `signal` aborts, `run` starts no further sync,
 * waits for syncs in flight within a bound, and resolves.
 */
export class Controller implements Runnable {
  readonly name: string;
  readonly #deps: ControllerDeps;
  readonly #options: ControllerOptions;
  /** Field name of a key in log lines. */
  readonly #keyName: string;
  readonly #queueLog: Logger;
  readonly #ownership: KeyOwnership | undefined;
  readonly #hotLoops: HotLoopGate;
  readonly #pipeline: SyncPipeline;
  readonly #watches: ControllerWatches;
  readonly #sources: Source[] = [];
  #term: Term;

  constructor(deps: ControllerDeps, options: ControllerOptions) {
    checkOptions(options, CONTROLLER_OPTIONS, 'Controller');
    const { kind, sync } = options;
    const { client, clock, fetch, cluster, sharding } = deps;
    const name = cluster === undefined ? options.name : `${options.name}-${cluster}`;
    const log = deps.log.with({ controller: name });
    const keyName = lowerFirst(kind);
    this.name = name;
    this.#options = options;
    this.#deps = { ...deps, log };
    this.#keyName = keyName;

    const metrics = (deps.metrics?.reconcile ?? noReconcileMetrics).postponed(name);
    const recorder = deps.events?.recorder(`${kind.toLowerCase()}-controller`);
    const ownership = sharding && new KeyOwnership((key) => sharding.shardOf(key));
    const ownWrites = new PendingWrites(clock, metrics);
    const hotLoops = new HotLoopGate({ client, clock, log, keyName, metrics, recorder });
    const conflicts = new QuietConflicts();
    const wallClock = new WallClockKeys(clock, log);
    const syncLog = new SyncLog({ controller: name, clock, log, history: deps.history });
    const tracer = deps.tracing && new SyncTracer(deps.tracing, name, kind);

    this.#ownership = ownership;
    this.#hotLoops = hotLoops;
    this.#queueLog = log.v(3);
    this.#watches = new ControllerWatches({
      name,
      cluster,
      resyncPeriodMs: deps.resyncPeriodMs,
      queue: this.#sink,
      isDetailed: () => tracer !== undefined || syncLog.isDetailed,
      observers: [ownWrites, hotLoops],
    });
    this.#term = this.#newTerm();
    this.#pipeline = new SyncPipeline({
      client,
      clock,
      fetch,
      handler: conflicts.wrap(tracer ? tracer.wrap(sync) : sync),
      hotLoopOf: (key) => hotLoops.describe(key),
      tap: deps.tap && ((handle) => deps.tap?.sync(name, handle) ?? handle),
      gates: [ownership, ownWrites, hotLoops].filter((gate) => gate !== undefined),
      observers: [
        ownership,
        ownWrites,
        hotLoops,
        conflicts,
        wallClock,
        syncLog,
        tracer,
        deps.observe?.(this),
      ].filter((observer) => observer !== undefined),
    });
    this.source(wallClock.source);
    if (sharding && ownership) {
      const { random = Math.random } = deps;
      serveShards(sharding, ownership, this.#watches, { clock, log, random });
    }
  }

  /** The queue of the current term; another one after a lost lease, if the process stands by again. */
  get queue(): WorkQueue<ObjectKey> {
    return this.#term.queue;
  }

  #newTerm(): Term {
    const { name } = this;
    const { rateLimiter, syncTimeoutMs, maxRetries } = this.#options;
    const { clock, log, random, drainTimeoutMs, metrics } = this.#deps;
    const { concurrency = this.#deps.concurrency ?? DEFAULT_CONCURRENCY } = this.#options;
    const queue = new WorkQueue<ObjectKey>(
      { name, clock },
      {
        tenantOf: (key) => splitKey(key).namespace ?? '',
        metrics: metrics?.workqueue,
        rateLimiter,
      },
    );
    const pool = new WorkerPool<ObjectKey>(
      {
        name,
        queue,
        clock,
        log,
        random,
        handler: (key, context) => this.#pipeline.sync(key, context),
      },
      {
        concurrency,
        keyName: this.#keyName,
        drainTimeoutMs,
        syncTimeoutMs,
        maxRetries,
        backoffOf: minBackoffAfter,
        onSyncEnd: (report, syncLog) => this.#pipeline.ended(report, syncLog),
        metrics: metrics?.reconcile,
      },
    );
    return { queue, pool };
  }

  /**
   * Replaces queue and workers, and enqueues the keys of all cached objects, so that `run` can be called again after it
   * has ended. Call it when the signal of `run` aborts, before its other listeners: no event is then missed. Failures
   * of keys are forgotten.
   */
  restart(): void {
    const former = this.queue;
    const { ready, delayed, processing } = former.snapshot();
    for (const { key } of [...ready, ...delayed, ...processing]) former.forget(key);
    this.#term = this.#newTerm();
    this.#watches.requeue(() => true, 'the lease was lost');
  }

  /** Enqueues the key of each changed object of the reconciled kind. Call it before `owns`. */
  for<T extends KubernetesObject>(informer: SharedInformer<T>, options?: WatchesOptions<T>): this {
    this.#watches.setReconciled(informer);
    return this.watches(informer, keyOf, options);
  }

  /**
   * Enqueues the owner of each changed object of the kinds that were added to `owned`, and the owner that waits for a
   * name when that may be free.
   */
  owns(owned: OwnedWatches): this;
  /**
   * Enqueues the key of the controller owner of each changed object, if it is of the kind `owner`.
   *
   * @throws {Error} if `orNamed` is set and `for` was not called before
   */
  owns<T extends KubernetesObject>(
    informer: SharedInformer<T>,
    owner: Resource,
    options?: OwnsOptions<T>,
  ): this;
  owns<T extends KubernetesObject>(
    owned: OwnedWatches | SharedInformer<T>,
    owner?: Resource,
    options: OwnsOptions<T> = {},
  ): this {
    if ('watches' in owned) {
      for (const { informer, map, options: watchOptions } of owned.watches()) {
        this.watches(informer, map, watchOptions);
      }
      return this;
    }
    if (!owner) throw new TypeError('owns: the resource of the owners is required');
    checkOptions(options, OWNS_OPTIONS, 'owns');
    const informer = owned;
    const { orNamed, ...watchOptions } = options;
    const toOwner = mapToOwner(owner);
    if (!orNamed) return this.watches(informer, toOwner, watchOptions);
    const owners = this.#watches.reconciled?.lister;
    if (!owners)
      throw new Error('owns: orNamed needs the informer of the owners: call for() first');
    const toNaming: MapFunction<T> = (object) =>
      allKeys(orNamed, object).filter((key) => owners.get(key) !== undefined);
    return this.watches(informer, (object) => toOwner(object) ?? toNaming(object), watchOptions);
  }

  /** Enqueues the keys that `map` returns for each changed object of any other kind. */
  watches<T extends KubernetesObject>(
    informer: SharedInformer<T>,
    map: MapFunction<T>,
    options: WatchesOptions<T> = {},
  ): this {
    checkOptions(options, WATCH_OPTIONS, 'watches');
    this.#watches.add(informer, map, options);
    return this;
  }

  /** Enqueues keys from another source than an informer, while the controller runs. */
  source(source: Source, options: SourceOptions = {}): this {
    this.#sources.push(options.restarts ? restartingSource(source, this.#deps) : source);
    return this;
  }

  /** The informers of `for`, `owns` and `watches`. */
  get informers(): readonly SharedInformer[] {
    return this.#watches.informers;
  }

  /** Name of the informer of the reconciled kind; undefined before `for`. */
  get reconciled(): string | undefined {
    return this.#watches.reconciled?.name;
  }

  /** Current hot loops. */
  get hotLoops(): readonly HotLoop[] {
    return this.#hotLoops.hotLoops;
  }

  /** True once every informer has synced and its handler has seen the initial objects. */
  get hasSynced(): boolean {
    return this.#watches.hasSynced;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { log } = this.#deps;
    log.info('Starting controller');
    if (!(await settledBeforeAbort(this.#watches.synced(), signal))) return;
    const sources = this.#sources.map((add) => (signal: AbortSignal) => add(this.#sink, signal));
    const { pool } = this.#term;
    try {
      await runAll([(signal) => pool.run(signal), ...sources], signal);
    } finally {
      this.#pipeline.stopped();
    }
    log.info('Stopped controller');
  }

  readonly #sink: KeySink = {
    add: (key, options) => {
      if (this.#ownership?.owns(key) === false) return;
      if (this.#queueLog.enabled) {
        this.#queueLog.info('Queued', { [this.#keyName]: key, cause: options?.cause });
      }
      this.queue.add(key, options);
    },
  };
}

/** What a controller has until it loses its lease. */
interface Term {
  readonly queue: WorkQueue<ObjectKey>;
  readonly pool: WorkerPool<ObjectKey>;
}

function lowerFirst(kind: string): string {
  return kind.charAt(0).toLowerCase() + kind.slice(1);
}
