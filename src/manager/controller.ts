import type { KubernetesObject } from '../api/object.ts';
import { splitKey } from '../api/object-key.ts';
import type { ObjectKey } from '../api/object-key.ts';
import { isApiError } from '../api/api-error.ts';
import type { Resource } from '../api/resource.ts';
import type { Informer, Registration } from '../cache/informer.ts';
import type { Client } from '../client/client.ts';
import type { ReconcileMetrics } from '../metrics/reconcile-metrics.ts';
import type { WorkqueueMetrics } from '../metrics/workqueue-metrics.ts';
import type { BackoffPolicy } from '../util/backoff.ts';
import type { Clock } from '../util/clock.ts';
import { Deferred } from '../util/deferred.ts';
import type { Logger } from '../util/logger.ts';
import type { Runnable } from '../util/runnable.ts';
import { postpone } from '../workqueue/outcome.ts';
import type { Outcome } from '../workqueue/outcome.ts';
import { exponentialLimiter } from '../workqueue/rate-limiter.ts';
import type { RateLimiter } from '../workqueue/rate-limiter.ts';
import { WorkQueue } from '../workqueue/work-queue.ts';
import { WorkerPool } from '../workqueue/worker-pool.ts';
import { enqueue, toController, toItself } from './enqueue.ts';
import type { KeySink, ToKeys } from './enqueue.ts';
import { observedClient } from './observed-client.ts';
import { OwnWrites } from './own-writes.ts';

/** What a run of a sync handler is given. */
export interface SyncContext {
  /** Aborts when the daemon can wait no longer for this run; pass it to every call. */
  readonly signal: AbortSignal;
  /** Names the controller and the key on every line. */
  readonly log: Logger;
  /** Its writes are remembered, so that no later run of this key sees a cache from before them. */
  readonly client: Client;
  /** Why this key runs: what happened since its last run, merged and bounded. */
  readonly causes: readonly string[];
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
}

/**
 * Pace at which a key looks again whether its caches have caught up, with its own writes or with
 * somebody else's. Events wake it earlier.
 */
const CATCH_UP_PACE: BackoffPolicy = { initialMs: 50, maxMs: 5_000 };

/** So many conflicts in a row are races; one more is something that deserves an error line. */
const QUIET_CONFLICTS = 5;

/**
 * Informers, a queue, a pool of workers and a sync handler as one `run(signal)`.
 *
 * No key runs before every informer it watches has synced and its handler has seen the initial
 * objects, nor while a cache lags behind the writes of the key's previous run. When `signal`
 * aborts, no further key is handed out, runs in flight finish within the pool's bound, and `run`
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
  readonly #writes = new OwnWrites();
  readonly #waits: RateLimiter<ObjectKey> = exponentialLimiter(CATCH_UP_PACE);
  readonly #conflicts: RateLimiter<ObjectKey> = exponentialLimiter(CATCH_UP_PACE);
  readonly #registrations: Registration[] = [];
  readonly #informers = new Set<Informer>();

  constructor(deps: ControllerDeps, options: ControllerOptions) {
    const { name, kind, sync, concurrency = 2 } = options;
    this.name = name;
    this.#deps = { ...deps, log: deps.log.with({ controller: name }) };
    this.#handler = sync;
    this.#queueLog = this.#deps.log.v(3);
    this.#keyName = lowerFirst(kind);
    this.queue = new WorkQueue<ObjectKey>(
      { name, clock: deps.clock },
      { tenantOf: (key) => splitKey(key).namespace ?? '', metrics: deps.metrics?.workqueue },
    );
    this.#pool = new WorkerPool(
      { name, queue: this.queue, clock: deps.clock, log: deps.log, handler: this.#sync },
      {
        concurrency,
        keyName: this.#keyName,
        drainTimeoutMs: deps.drainTimeoutMs,
        metrics: deps.metrics?.reconcile,
      },
    );
  }

  /** The kind this controller is for: its objects' keys are queued. */
  for<T extends KubernetesObject>(informer: Informer<T>): this {
    return this.watches(informer, toItself);
  }

  /** A kind of children: the keys of their controllers are queued. */
  owns<T extends KubernetesObject>(informer: Informer<T>, owner: Resource): this {
    return this.watches(informer, toController(owner));
  }

  /** Any other kind that a key depends on. */
  watches<T extends KubernetesObject>(informer: Informer<T>, toKeys: ToKeys<T>): this {
    this.#writes.track(informer);
    this.#informers.add(informer);
    this.#registrations.push(
      informer.addHandler(enqueue(informer.resource, this.#sink, toKeys), {
        name: this.name,
        resyncPeriodMs: this.#deps.resyncPeriodMs ?? 0,
      }),
    );
    return this;
  }

  /** What its keys come from, and what its syncs read. */
  get informers(): readonly Informer[] {
    return [...this.#informers];
  }

  /** True once every informer has synced and its handler has seen the initial objects. */
  get hasSynced(): boolean {
    return this.#registrations.every(({ hasSynced }) => hasSynced);
  }

  async run(signal: AbortSignal): Promise<void> {
    const { log } = this.#deps;
    log.info('Starting controller');
    if (!(await this.#synced(signal))) return;
    await this.#pool.run(signal);
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

  readonly #sync = async (
    key: ObjectKey,
    context: Omit<SyncContext, 'client'>,
  ): Promise<Outcome> => {
    if (!this.#writes.visible(key)) {
      // The write's own event will wake the key; this is the net under it.
      context.log.v(4).info('Waiting for the cache to show own writes');
      return postpone(this.#waits.when(key));
    }
    this.#waits.forget(key);
    const client = observedClient(this.#deps.client, this.#deps.clock, (call) =>
      this.#writes.enter(key, call),
    );
    try {
      const outcome = await this.#handler(key, { ...context, client });
      this.#conflicts.forget(key);
      return outcome;
    } catch (error) {
      if (!isApiError(error, 'conflict')) {
        this.#conflicts.forget(key);
        throw error;
      }
      if (this.#conflicts.retries(key) >= QUIET_CONFLICTS) throw error;
      // Somebody else was quicker. The cache is about to show what they did; that is no failure.
      context.log.v(4).info('Object changed meanwhile', { reason: error.message });
      return postpone(this.#conflicts.when(key));
    }
  };
}

function lowerFirst(kind: string): string {
  return kind.charAt(0).toLowerCase() + kind.slice(1);
}
