import type { KubernetesObject } from '../api/object.ts';
import { splitKey } from '../api/object-key.ts';
import type { ObjectKey } from '../api/object-key.ts';
import { isApiError } from '../api/api-error.ts';
import type { Resource } from '../api/resource.ts';
import type { Registration } from '../cache/handler.ts';
import type { SharedInformer } from '../cache/shared-informer.ts';
import type { Client } from '../client/client.ts';
import { noReconcileMetrics } from '../metrics/reconcile-metrics.ts';
import type { ReconcileMetrics } from '../metrics/reconcile-metrics.ts';
import type { WorkqueueMetrics } from '../metrics/workqueue-metrics.ts';
import type { EventRecorder } from '../record/event-recorder.ts';
import type { Clock } from '../util/clock.ts';
import { Deferred } from '../util/deferred.ts';
import type { Logger } from '../util/logger.ts';
import { runAll } from '../util/run-all.ts';
import type { Runnable } from '../util/runnable.ts';
import type { Cause } from '../workqueue/cause.ts';
import { postpone } from '../workqueue/outcome.ts';
import type { Outcome } from '../workqueue/outcome.ts';
import { exponentialLimiter } from '../workqueue/rate-limiter.ts';
import type { RateLimiter } from '../workqueue/rate-limiter.ts';
import { WorkQueue } from '../workqueue/work-queue.ts';
import { WorkerPool } from '../workqueue/worker-pool.ts';
import type { HandlerContext } from '../workqueue/worker-pool.ts';
import { enqueue, toController, toItself } from './enqueue.ts';
import type { KeySink, ToKeys } from './enqueue.ts';
import { CATCH_UP_PACE, Gate } from './gate.ts';
import type { HotLoop } from './loop-evidence.ts';
import { observedClient } from './observed-client.ts';
import type { RunHistory } from './run-history.ts';
import { RunLog } from './run-log.ts';

/** What a run of a sync handler is given. */
export interface SyncContext {
  /** Aborts when the daemon can wait no longer for this run; pass it to every call. */
  readonly signal: AbortSignal;
  /** Names the controller and the key on every line. */
  readonly log: Logger;
  /** Its writes are remembered, so that no later run of this key sees a cache from before them. */
  readonly client: Client;
  /** Why this key runs: what happened since its last run, merged and bounded. */
  readonly causes: readonly Cause[];
}

/**
 * Makes the actual state match the desired one for one key. It is level-triggered: it reads both
 * from caches and never learns what changed. Return `done()` or `requeueAfter(ms)`; throw to be
 * retried with backoff, or `TerminalError` when a retry could not help. Runs for one key never
 * overlap.
 */
export type SyncHandler = (key: ObjectKey, context: SyncContext) => Promise<Outcome>;

export interface ControllerDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Logger;
  /**
   * Milliseconds that runs in flight have to finish when the controller is stopped.
   * @default 30_000
   */
  readonly drainTimeoutMs?: number | undefined;
  /**
   * How often every object is looked at again although nothing happened, in milliseconds; 0: never.
   * @default 0
   */
  readonly resyncPeriodMs?: number | undefined;
  /**
   * Where recorders of events come from: an `EventBroadcaster`. Objects whose keys are in a hot loop
   * are told so.
   * @default none, the log alone is told
   */
  readonly events?: { recorder(component: string): EventRecorder } | undefined;
  /**
   * Where runs are remembered: several controllers may share one. Causes tell in detail what changed
   * then, and calls are taken down, as they are from `-v=4`.
   * @default none
   */
  readonly history?: RunHistory | undefined;
  /**
   * Numbers in [0, 1), for the names of runs.
   * @default Math.random
   */
  readonly random?: (() => number) | undefined;
  /** @default none */
  readonly metrics?: ControllerMetrics | undefined;
}

export interface ControllerMetrics {
  readonly workqueue: WorkqueueMetrics;
  readonly reconcile: ReconcileMetrics;
}

export interface ControllerOptions {
  /** Unique in the process; names the queue in logs and metrics: `count`. */
  readonly name: string;
  /** The kind that keys name: the field of log lines is its lower-case form. */
  readonly kind: string;
  readonly sync: SyncHandler;
  /**
   * Keys that run at once.
   * @default 2
   */
  readonly concurrency?: number;
  /**
   * Milliseconds a sync may take before its signal aborts.
   * @default for ever
   */
  readonly syncTimeoutMs?: number | undefined;
  /**
   * How often a key that fails is tried again before it is given up, logged and counted.
   * @default for ever, with backoff
   */
  readonly maxRetries?: number | undefined;
}

/** Adds keys to a controller's queue until the signal aborts. */
export type Feed = (queue: KeySink, signal: AbortSignal) => Promise<void>;

/** So many conflicts in a row are races; one more is something that deserves an error line. */
const QUIET_CONFLICTS = 5;

/**
 * Informers, a queue, a pool of workers and a sync handler as one `run(signal)`.
 *
 * No key runs before every informer it watches has synced and its handler has seen the initial
 * objects, nor while a cache lags behind the writes of the key's previous run. A key that keeps
 * waking itself is slowed down (`HotLoops` says what that is). When `signal` aborts, no further key is handed out, runs in flight finish within the pool's bound, and `run`
 * resolves.
 */
export class Controller implements Runnable {
  readonly name: string;
  readonly queue: WorkQueue<ObjectKey>;
  readonly #deps: ControllerDeps;
  readonly #handler: SyncHandler;
  readonly #pool: WorkerPool<ObjectKey>;
  readonly #queueLog: Logger;
  readonly #keyName: string;
  readonly #gate: Gate;
  readonly #runs: RunLog;
  readonly #conflicts: RateLimiter<ObjectKey> = exponentialLimiter(CATCH_UP_PACE);
  readonly #registrations: Registration[] = [];
  readonly #feeds: Feed[] = [];
  /** Finds the key of the object, of the kind this controller is for, that controls another. */
  #ownerOf: ToKeys<KubernetesObject> | undefined;
  readonly #informers = new Set<SharedInformer>();

  constructor(deps: ControllerDeps, options: ControllerOptions) {
    const { name, kind, sync, concurrency = 2, syncTimeoutMs, maxRetries } = options;
    const { client, clock, log, random } = deps;
    const { workqueue, reconcile = noReconcileMetrics } = deps.metrics ?? {};
    this.name = name;
    this.#deps = { ...deps, log: log.with({ controller: name }) };
    this.#handler = sync;
    this.#queueLog = this.#deps.log.v(3);
    this.#keyName = lowerFirst(kind);
    this.#runs = new RunLog({
      controller: name,
      clock,
      log: this.#deps.log,
      history: deps.history,
    });
    this.#gate = new Gate({
      client,
      clock,
      log: this.#deps.log,
      keyName: this.#keyName,
      metrics: reconcile.holds(name),
      recorder: deps.events?.recorder(`${kind.toLowerCase()}-controller`),
    });
    this.queue = new WorkQueue<ObjectKey>(
      { name, clock },
      { tenantOf: (key) => splitKey(key).namespace ?? '', metrics: workqueue },
    );
    this.#pool = new WorkerPool(
      { name, queue: this.queue, clock, log, random, handler: this.#sync },
      {
        concurrency,
        keyName: this.#keyName,
        drainTimeoutMs: deps.drainTimeoutMs,
        runTimeoutMs: syncTimeoutMs,
        maxRetries,
        onRun: (report, runLog) => this.#runs.finished(report, runLog),
        metrics: reconcile,
      },
    );
  }

  /** The kind this controller is for: its objects' keys are queued. */
  for<T extends KubernetesObject>(informer: SharedInformer<T>): this {
    this.#gate.track(informer, true);
    this.#ownerOf = toController(informer.resource);
    return this.#watch(informer, toItself);
  }

  /** A kind of children: the keys of their controllers are queued. */
  owns<T extends KubernetesObject>(informer: SharedInformer<T>, owner: Resource): this {
    return this.watches(informer, toController(owner));
  }

  /** Any other kind that a key depends on. */
  watches<T extends KubernetesObject>(informer: SharedInformer<T>, toKeys: ToKeys<T>): this {
    this.#gate.track(informer, false);
    return this.#watch(informer, toKeys);
  }

  /** Keys from elsewhere than the API server: `feed` adds them while the controller works. */
  fedBy(feed: Feed): this {
    this.#feeds.push(feed);
    return this;
  }

  #watch<T extends KubernetesObject>(informer: SharedInformer<T>, toKeys: ToKeys<T>): this {
    const { resource } = informer;
    this.#informers.add(informer);
    const handler = enqueue(resource, this.#sink, toKeys, {
      detailed: () => this.#runs.isDetailed,
      isChild: (key, object) => this.#ownerOf?.(object) === key,
      onChange: (key, before, after) => this.#gate.saw(key, resource, before, after),
    });
    this.#registrations.push(
      informer.addHandler(handler, {
        name: this.name,
        resyncPeriodMs: this.#deps.resyncPeriodMs ?? 0,
      }),
    );
    return this;
  }

  /** What its keys come from, and what its syncs read. */
  get informers(): readonly SharedInformer[] {
    return [...this.#informers];
  }

  /** The hot loops that keys are in now. */
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
    const feeds = this.#feeds.map((feed) => (signal: AbortSignal) => feed(this.#sink, signal));
    try {
      await runAll([(signal) => this.#pool.run(signal), ...feeds], signal);
    } finally {
      this.#gate.close();
      this.#runs.close();
    }
    log.info('Stopped controller');
  }

  /** Waits for the informers; false if the signal came first. */
  async #synced(signal: AbortSignal): Promise<boolean> {
    const synced = Promise.all(this.#registrations.map((registration) => registration.synced));
    const settled = new Deferred<boolean>();
    const onAbort = () => settled.resolve(false);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    synced.then(() => settled.resolve(true), settled.reject.bind(settled));
    try {
      return await settled.promise;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  readonly #sink: KeySink = {
    add: (key, options) => {
      if (this.#queueLog.enabled) {
        this.#queueLog.info('Queued', { [this.#keyName]: key, cause: options?.cause });
      }
      this.queue.add(key, options);
    },
  };

  readonly #sync = async (key: ObjectKey, context: HandlerContext): Promise<Outcome> => {
    const { signal, log, causes } = context;
    const held = await this.#gate.hold(key, signal);
    if (held) {
      this.#runs.held(key, held.reason ?? 'held back');
      return held;
    }
    const recorder = this.#runs.begin(key, context);
    const client = observedClient(this.#deps.client, this.#deps.clock, (call) => {
      this.#gate.called(key, call);
      recorder?.called(call);
    });
    try {
      const outcome = await this.#handler(key, { signal, log, causes, client });
      this.#conflicts.forget(key);
      return outcome;
    } catch (error) {
      if (!isApiError(error, 'conflict')) {
        this.#conflicts.forget(key);
        throw error;
      }
      if (this.#conflicts.retries(key) >= QUIET_CONFLICTS) throw error;
      // Somebody else was quicker. The cache is about to show what they did; that is no failure.
      return postpone(this.#conflicts.when(key), 'an object changed meanwhile');
    }
  };
}

function lowerFirst(kind: string): string {
  return kind.charAt(0).toLowerCase() + kind.slice(1);
}
