import type { KubernetesObject } from '../api/object.ts';
import { keyOf, splitKey } from '../api/object-key.ts';
import type { ObjectKey } from '../api/object-key.ts';
import { isApiError, isCausedByInvalid } from '../api/api-error.ts';
import type { Resource } from '../api/resource.ts';
import type { HandlerRegistration } from '../cache/event-handler.ts';
import type { SharedInformer } from '../cache/shared-informer.ts';
import { noReconcileMetrics } from '../metrics/no-metrics.ts';
import { settledBeforeAbort } from '../util/abort.ts';
import { Backoff } from '../util/backoff.ts';
import type { BackoffPolicy } from '../util/backoff.ts';
import { formatDuration } from '../util/duration.ts';
import type { Logger } from '../util/logger.ts';
import { runAll } from '../util/runnable.ts';
import type { Runnable } from '../util/runnable.ts';
import { done, postpone } from '../workqueue/outcome.ts';
import type { Outcome } from '../workqueue/outcome.ts';
import { exponentialLimiter, SLOW_KEY_BACKOFF } from '../workqueue/rate-limiter.ts';
import type { RateLimiter } from '../workqueue/rate-limiter.ts';
import { LOW_PRIORITY, WorkQueue } from '../workqueue/work-queue.ts';
import { WorkerPool } from '../workqueue/worker-pool.ts';
import type { KeyHandlerContext } from '../workqueue/worker-pool.ts';
import type {
  ControllerDeps,
  ControllerObserver,
  ControllerOptions,
  OwnedWatches,
  OwnsOptions,
  Source,
  SourceOptions,
  SyncHandler,
  WatchesOptions,
} from './controller-options.ts';
import { ServiceError } from './call-service.ts';
import type { ServiceCall } from './call-service.ts';
import { DEFAULT_CONCURRENCY } from './controller-options.ts';
import { allKeys, enqueue, mapToOwner } from './enqueue.ts';
import type { KeySink, MapFunction } from './enqueue.ts';
import { CATCH_UP_BACKOFF, RunGate } from './run-gate.ts';
import { KeyOwnership, serveShards } from './key-ownership.ts';
import { predicates } from './predicate.ts';
import type { HotLoop } from './hot-loop/written-object.ts';
import { observedClient } from '../client/observed-client.ts';
import { SyncLog } from './sync-log.ts';
import { SyncTracer } from './tracing.ts';
import type { Sharding } from './key-ownership.ts';
import { WallClockKeys } from './clock-jumps.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';

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

/** Backoff of a source that is restarted. */
const SOURCE_BACKOFF = { initialMs: 800, maxMs: 30_000, jitter: 1 };

/** Minimum backoff of a key after a failed call of an external service: 1 s doubling to 5 min. */
const SERVICE_BACKOFF = { initialMs: 1000, maxMs: 300_000 };

/** Number of consecutive conflicts of a key that are not reported as errors. */
const QUIET_CONFLICTS = 5;

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
  #queue: WorkQueue<ObjectKey>;
  readonly #deps: ControllerDeps;
  readonly #handler: SyncHandler;
  #pool: WorkerPool<ObjectKey>;
  readonly #options: ControllerOptions;
  readonly #queueLog: Logger;
  readonly #keyName: string;
  readonly #gate: RunGate;
  readonly #syncLog: SyncLog;
  readonly #tracer: SyncTracer | undefined;
  #conflicts: RateLimiter<ObjectKey> = exponentialLimiter(CATCH_UP_BACKOFF);
  readonly #registrations: HandlerRegistration[] = [];
  readonly #wallClock: WallClockKeys;
  readonly #sources: Source[] = [];
  readonly #ownership: KeyOwnership | undefined;
  readonly #observer: ControllerObserver | undefined;
  /** One function for each informer: enqueues the selected keys of its objects. */
  readonly #requeues: ((isWanted: (key: ObjectKey) => boolean, cause: string) => void)[] = [];
  /** Informer of the reconciled kind. */
  #reconciled: SharedInformer | undefined;
  /** Maps an object to its controller owner of the reconciled kind. */
  #ownerOf: MapFunction | undefined;
  readonly #informers = new Set<SharedInformer>();

  constructor(deps: ControllerDeps, options: ControllerOptions) {
    checkOptions(options, CONTROLLER_OPTIONS, 'Controller');
    const { kind, sync } = options;
    const { client, clock, log, cluster } = deps;
    const name = cluster === undefined ? options.name : `${options.name}-${cluster}`;
    const { reconcile = noReconcileMetrics } = deps.metrics ?? {};
    this.name = name;
    this.#options = { ...options, name };
    this.#deps = { ...deps, log: log.with({ controller: name }) };
    this.#handler = sync;
    this.#queueLog = this.#deps.log.v(3);
    this.#wallClock = new WallClockKeys(clock, this.#deps.log);
    this.source(this.#wallClock.source);
    this.#keyName = lowerFirst(kind);
    this.#syncLog = new SyncLog({
      controller: name,
      clock,
      log: this.#deps.log,
      history: deps.history,
    });
    this.#tracer = deps.tracing && new SyncTracer(deps.tracing, name, kind);
    this.#gate = new RunGate({
      client,
      clock,
      log: this.#deps.log,
      keyName: this.#keyName,
      metrics: reconcile.postponed(name),
      recorder: deps.events?.recorder(`${kind.toLowerCase()}-controller`),
    });
    this.#queue = this.#newQueue();
    this.#pool = this.#newPool();
    if (deps.sharding) this.#ownership = this.#serveShards(deps.sharding);
    this.#observer = deps.observe?.(this);
  }

  /** The queue of the current term; another one after a lost lease, if the process stands by again. */
  get queue(): WorkQueue<ObjectKey> {
    return this.#queue;
  }

  #newQueue(): WorkQueue<ObjectKey> {
    const { name, rateLimiter } = this.#options;
    const { clock, metrics } = this.#deps;
    return new WorkQueue<ObjectKey>(
      { name, clock },
      {
        tenantOf: (key) => splitKey(key).namespace ?? '',
        metrics: metrics?.workqueue,
        rateLimiter,
      },
    );
  }

  #newPool(): WorkerPool<ObjectKey> {
    const { clock, log, random, drainTimeoutMs, metrics } = this.#deps;
    const { concurrency = this.#deps.concurrency ?? DEFAULT_CONCURRENCY } = this.#options;
    const { name, syncTimeoutMs, maxRetries } = this.#options;
    return new WorkerPool(
      { name, queue: this.#queue, clock, log, random, handler: this.#sync },
      {
        concurrency,
        keyName: this.#keyName,
        drainTimeoutMs,
        syncTimeoutMs,
        maxRetries,
        backoffOf,
        onSyncEnd: (report, runLog) => {
          this.#syncLog.finish(report, runLog);
          this.#tracer?.finish(report);
          this.#observer?.ended(report);
        },
        metrics: metrics?.reconcile,
      },
    );
  }

  /**
   * Replaces queue and workers, and enqueues the keys of all cached objects, so that `run` can be called again after it
   * has ended. Call it when the signal of `run` aborts, before its other listeners: no event is then missed. Failures
   * of keys are forgotten.
   */
  restart(): void {
    const former = this.#queue;
    const { ready, delayed, processing } = former.snapshot();
    for (const { key } of [...ready, ...delayed, ...processing]) former.forget(key);
    this.#queue = this.#newQueue();
    this.#pool = this.#newPool();
    this.#conflicts = exponentialLimiter(CATCH_UP_BACKOFF);
    for (const requeue of this.#requeues) requeue(() => true, 'the lease was lost');
  }

  /** Enqueues the key of each changed object of the reconciled kind. Call it before `owns`. */
  for<T extends KubernetesObject>(informer: SharedInformer<T>, options?: WatchesOptions<T>): this {
    if (this.#isOwn(informer)) this.#gate.track(informer, true);
    this.#reconciled = informer;
    this.#ownerOf = mapToOwner(informer.resource);
    return this.#watch(informer, keyOf, options);
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
    const owners = this.#reconciled?.lister;
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
    options?: WatchesOptions<T>,
  ): this {
    if (this.#isOwn(informer)) this.#gate.track(informer, false);
    return this.#watch(informer, map, options);
  }

  /** Enqueues keys from another source than an informer, while the controller runs. */
  source(source: Source, options: SourceOptions = {}): this {
    this.#sources.push(options.restarts ? this.#restarting(source) : source);
    return this;
  }

  #restarting(source: Source): Source {
    const { clock, log, random } = this.#deps;
    return async (queue, signal) => {
      const backoff = new Backoff(SOURCE_BACKOFF, random);
      while (!signal.aborted) {
        const startedMs = clock.monotonic();
        try {
          await source(queue, signal);
          return;
        } catch (error) {
          if (signal.aborted) return;
          if (clock.monotonic() - startedMs > SOURCE_BACKOFF.maxMs) backoff.reset();
          const delayMs = backoff.next();
          log.error(error, 'Source failed; restarting it', { after: formatDuration(delayMs) });
          await clock.sleep(delayMs, signal);
        }
      }
    };
  }

  /** Returns whether the informer is of the cluster that syncs write to. */
  #isOwn({ cluster }: Pick<SharedInformer, 'cluster'>): boolean {
    return cluster === this.#deps.cluster;
  }

  #watch<T extends KubernetesObject>(
    informer: SharedInformer<T>,
    map: MapFunction<T>,
    options: WatchesOptions<T> = {},
  ): this {
    checkOptions(options, WATCH_OPTIONS, 'watches');
    const { resource } = informer;
    const predicate = predicates.and(...(options.predicates ?? []));
    this.#informers.add(informer);
    const handler = enqueue(resource, this.#sink, map, {
      predicates: [predicate],
      detailed: () => this.#tracer !== undefined || this.#syncLog.isDetailed,
      isChild: (key, object) => this.#ownerOf?.(object) === key,
      onChange: this.#isOwn(informer)
        ? (key, before, after) => this.#gate.observe(key, resource, before, after)
        : undefined,
    });
    this.#registrations.push(
      informer.addHandler(handler, {
        name: this.name,
        resyncPeriodMs: this.#deps.resyncPeriodMs ?? 0,
      }),
    );
    this.#requeues.push((isWanted, cause) => {
      for (const object of informer.lister.list()) {
        if (!predicate.create(object, true)) continue;
        for (const key of allKeys(map, object)) {
          if (isWanted(key)) this.#sink.add(key, { priority: LOW_PRIORITY, cause });
        }
      }
    });
    return this;
  }

  #serveShards(sharding: Sharding): KeyOwnership {
    const { clock, log, random = Math.random } = this.#deps;
    const ownership = new KeyOwnership((key) => sharding.shardOf(key));
    const keys = {
      informers: () => this.#informers,
      requeue: (shard: number) => {
        for (const requeue of this.#requeues) {
          requeue((key) => sharding.shardOf(key) === shard, 'its shard was taken over');
        }
      },
    };
    serveShards(sharding, ownership, keys, { clock, log, random });
    return ownership;
  }

  /** The informers of `for`, `owns` and `watches`. */
  get informers(): readonly SharedInformer[] {
    return [...this.#informers];
  }

  /** Name of the informer of the reconciled kind; undefined before `for`. */
  get reconciled(): string | undefined {
    return this.#reconciled?.name;
  }

  /** Current hot loops. */
  get hotLoops(): readonly HotLoop[] {
    return this.#gate.hotLoops;
  }

  /** True once every informer has synced and its handler has seen the initial objects. */
  get hasSynced(): boolean {
    return this.#registrations.every(({ hasSynced }) => hasSynced);
  }

  async run(signal: AbortSignal): Promise<void> {
    const { log } = this.#deps;
    log.info('Starting controller');
    if (!(await this.#synced(signal))) return;
    const sources = this.#sources.map((add) => (signal: AbortSignal) => add(this.#sink, signal));
    const pool = this.#pool;
    try {
      await runAll([(signal) => pool.run(signal), ...sources], signal);
    } finally {
      this.#gate.close();
      this.#syncLog.close();
    }
    log.info('Stopped controller');
  }

  /** Waits for the informers. Resolves with false if the signal aborts before. */
  #synced(signal: AbortSignal): Promise<boolean> {
    const synced = Promise.all(this.#registrations.map((registration) => registration.synced));
    return settledBeforeAbort(synced, signal);
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

  readonly #sync = async (key: ObjectKey, context: KeyHandlerContext): Promise<Outcome> => {
    if (!this.#ownership) return this.#run(key, context);
    const leave = this.#ownership.enter(key);
    // The shard was handed over since the key was queued. Its new owner has queued the key, too.
    if (!leave) return done();
    try {
      return await this.#run(key, context);
    } finally {
      leave();
    }
  };

  async #run(key: ObjectKey, context: KeyHandlerContext): Promise<Outcome> {
    const { signal, log, causes } = context;
    const postponed = await this.#gate.check(key, signal);
    if (postponed) {
      this.#syncLog.postponed(key, postponed.reason ?? 'postponed');
      return postponed;
    }
    const recorder = this.#syncLog.start(key, context);
    const trace = this.#tracer?.start(key, context);
    const { client: own, clock, fetch } = this.#deps;
    const client = observedClient(trace ? trace.client(own) : own, clock, (call) => {
      this.#gate.called(key, call);
      recorder?.recordCall(call);
      this.#observer?.called(key, call);
    });
    try {
      const onServiceCall = recorder && ((call: ServiceCall) => recorder.recordCall(call));
      const ensured = new Set<string>();
      const sync = { signal, log, causes, client, clock, fetch, onServiceCall, ensured };
      const outcome = await (trace
        ? trace.run(() => this.#handler(key, sync))
        : this.#handler(key, sync));
      this.#conflicts.forget(key);
      this.#wallClock.record(key, outcome);
      return outcome;
    } catch (error) {
      if (!isApiError(error, 'conflict')) {
        this.#conflicts.forget(key);
        throw error;
      }
      if (this.#conflicts.retries(key) >= QUIET_CONFLICTS) throw error;
      // Another client changed the object, and the event of the change enqueues the key: not a failure.
      return postpone(this.#conflicts.when(key), 'an object changed meanwhile');
    }
  }
}

function lowerFirst(kind: string): string {
  return kind.charAt(0).toLowerCase() + kind.slice(1);
}

/** Returns the minimum backoff after errors that a fast retry rarely resolves. */
function backoffOf(error: unknown): BackoffPolicy | undefined {
  if (isCausedByInvalid(error)) return SLOW_KEY_BACKOFF;
  return error instanceof ServiceError ? SERVICE_BACKOFF : undefined;
}
