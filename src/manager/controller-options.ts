import type { KubernetesObject } from '../api/object.ts';
import type { ObjectKey } from '../api/object-key.ts';
import type { SharedInformer } from '../cache/shared-informer.ts';
import type { Client } from '../client/client.ts';
import type { ReconcileMetrics } from '../metrics/reconcile-metrics.ts';
import type { WorkqueueMetrics } from '../metrics/workqueue-metrics.ts';
import type { EventRecorder } from '../record/event-recorder.ts';
import type { ShardHandler } from '../sharding/shards.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import type { Cause } from '../workqueue/queue-item.ts';
import type { Outcome } from '../workqueue/outcome.ts';
import type { RateLimiter } from '../workqueue/rate-limiter.ts';
import type { SyncReport, SyncRun } from '../workqueue/sync-report.ts';
import type { WorkQueue } from '../workqueue/work-queue.ts';
import type { ServiceCall, ServiceContext } from './call-service.ts';
import type { KeySink, MapFunction } from './enqueue.ts';
import type { HotLoop } from './hot-loop/written-object.ts';
import type { FinishedCall } from '../client/observed-client.ts';
import type { Predicate } from './predicate.ts';
import type { OpenTelemetryApi } from '../util/open-telemetry.ts';
import type { ProgramTap } from './program-tap.ts';
import type { SyncHistory } from './sync-history.ts';

/** The arguments of one sync, besides the key. */
export interface SyncContext extends ServiceContext {
  /** Aborts when the sync exceeds its timeout or the program stops. Pass it to every call. */
  readonly signal: AbortSignal;
  /** Adds the controller and the key to every line. */
  readonly log: Logger;
  /** Its writes delay the next sync of this key until the caches contain them. */
  readonly client: Client;
  /**
   * Uids of the owned objects that this sync has kept, see `OwnedObjects.ensure`.
   * @default calls of `ensure` are independent
   */
  readonly ensured?: Set<string> | undefined;
  /**
   * Desired objects whose names are not free yet, see `OwnedObjects.ensure`.
   * @default only the outcomes have them
   */
  readonly terminating?: Set<string> | undefined;
  /**
   * Returns what this sync has changed in a hot loop, in a sentence; undefined if nothing. See `StatusWriter.report`.
   * @default hot loops are not reported
   */
  readonly hotLoop?: (() => string | undefined) | undefined;
  /** The events since the last sync of this key, merged and bounded. */
  readonly causes: readonly Cause[];
}

/**
 * Reconciles one key: changes the actual state to the desired state. It is level-triggered: it reads
 * both from caches, and does not depend on the events. Syncs of one key never overlap.
 *
 * Returns `done()`, `requeueAfter(ms)` or `requeueAt(ms)`. Throws to be retried with backoff: 5 ms doubling to 5 min, from
 * 1 s on after a `ServiceError`, and from 5 s on if the server rejected an object as invalid. Throws `TerminalError` if a
 * retry cannot help.
 */
export type SyncHandler = (key: ObjectKey, context: SyncContext) => Promise<Outcome>;

/** Dependencies of `Controller`. */
export interface ControllerDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Logger;
  /**
   * Time that syncs in flight have to finish when the controller stops, in milliseconds.
   * @default 30_000
   */
  readonly drainTimeoutMs?: number | undefined;
  /**
   * Period in which the keys of all cached objects are enqueued, in milliseconds. 0 disables it.
   * @default 0
   */
  readonly resyncPeriodMs?: number | undefined;
  /**
   * Number of keys that are synced at the same time, unless the options of the controller have another.
   * @default 10; see `DEFAULT_CONCURRENCY`
   */
  readonly concurrency?: number | undefined;
  /**
   * Returns recorders of events, as an `EventBroadcaster`. An event reports a hot loop to its object.
   * @default none: hot loops are only logged
   */
  readonly events?: { recorder(component: string): EventRecorder } | undefined;
  /**
   * Records syncs; several controllers can share one. Causes are then detailed and calls are recorded, as
   * with `-v=4`.
   * @default none
   */
  readonly history?: SyncHistory | undefined;
  /**
   * Returns numbers in [0, 1), for the ids of syncs.
   * @default Math.random
   */
  readonly random?: (() => number) | undefined;
  /**
   * Sends the requests of `callService`.
   * @default the global `fetch`
   */
  readonly fetch?: typeof fetch | undefined;
  /** @default none */
  readonly metrics?: ControllerMetrics | undefined;
  /**
   * Shards that replicas share. Only keys of shards that this process holds are synced.
   * @default all keys are synced
   */
  readonly sharding?: Sharding | undefined;
  /**
   * Name of the cluster of `client`, if it is not the program's own: part of the names of its controllers.
   * @default the program's own cluster
   */
  readonly cluster?: string | undefined;
  /**
   * Creates an OpenTelemetry span for each sync and each of its requests: the module `@opentelemetry/api`.
   * @default none
   */
  readonly tracing?: OpenTelemetryApi | undefined;
  /**
   * Called once; the result observes the calls and syncs of the controller.
   * @default none
   */
  readonly observe?: ((controller: ObservedController) => ControllerObserver) | undefined;
  /**
   * Records or replaces syncs.
   * @default none
   */
  readonly tap?: Pick<ProgramTap, 'sync'> | undefined;
}

/** Distribution of keys over replicas; implemented by `Shards`. */
export interface Sharding {
  /** Returns the shard of a key. All replicas agree on it. */
  shardOf(key: ObjectKey): number;
  /** Returns whether this process holds the shard of `key` now. */
  holds(key: ObjectKey): boolean;
  /** Registers `serve`, which is called for every shard that this process acquires. */
  onShard(serve: ShardHandler): void;
}

/** The part of a controller that an observer reads. */
export interface ObservedController {
  readonly name: string;
  readonly queue: WorkQueue<ObjectKey>;
  readonly informers: readonly SharedInformer[];
  readonly hotLoops: readonly HotLoop[];
  readonly hasSynced: boolean;
}

/** Observes the calls and syncs of a controller. */
export interface ControllerObserver {
  /** Called when a sync of `key` starts, not if it is postponed. */
  started?(key: ObjectKey, run: SyncRun): void;
  /** Called after each call of a sync of `key`. */
  called?(key: ObjectKey, call: FinishedCall): void;
  /** Called after each `callService` of a sync of `key`. */
  calledService?(key: ObjectKey, call: ServiceCall): void;
  /**
   * Called after each sync or postponement. The queue already contains the next sync of the key.
   *
   * @param log adds the controller, the key and the reconcileID to every line
   */
  ended?(report: SyncReport<ObjectKey>, log: Logger): void;
  /** Called when all syncs have ended after a stop. */
  stopped?(): void;
}

export interface ControllerMetrics {
  readonly workqueue: WorkqueueMetrics;
  readonly reconcile: ReconcileMetrics;
}

/**
 * Default number of keys of a controller that are synced at the same time. Workers do nothing but wait for the
 * API server, so more of them shorten a burst and cost no more CPU, up to the number at which the server is busy.
 */
export const DEFAULT_CONCURRENCY = 10;

/** Options of `Controller`. */
export interface ControllerOptions {
  /** Unique in the process. Names the queue in logs and metrics: `count`. */
  readonly name: string;
  /** The reconciled kind. The field of keys in log lines is its lower-case form. */
  readonly kind: string;
  readonly sync: SyncHandler;
  /**
   * Number of keys that are synced at the same time.
   * @default that of the kit
   */
  readonly concurrency?: number | undefined;
  /**
   * Time after which the signal of a sync aborts, in milliseconds.
   * @default no timeout
   */
  readonly syncTimeoutMs?: number | undefined;
  /**
   * Number of retries after which a key that fails is dropped, logged and counted.
   * @default no limit
   */
  readonly maxRetries?: number | undefined;
  /**
   * Delays of the retries of keys that fail.
   * @default exponentialLimiter(): 5 ms doubling to 5 min
   */
  readonly rateLimiter?: RateLimiter<ObjectKey> | undefined;
}

/** Options of `for` and `watches`. */
export interface WatchesOptions<T extends KubernetesObject> {
  /**
   * Events that a predicate rejects enqueue nothing; all predicates must accept an event.
   * @default all events are accepted
   */
  readonly predicates?: readonly Predicate<T>[] | undefined;
}

/** Options of `owns`. */
export interface OwnsOptions<T extends KubernetesObject> extends WatchesOptions<T> {
  /**
   * Maps an object without an owner of the kind to the owners that want an object of its name: they wait
   * until the name is free. Keys that are not in the cache of the owners are ignored. Use `keyOf` if
   * owned objects have the name of their owner, `mapByName` if an index knows the names.
   * @default changes of such objects enqueue nothing
   */
  readonly orNamed?: MapFunction<T> | undefined;
}

/** The kinds that `owns` watches, as an `OwnedObjects` returns them. */
export interface OwnedWatches {
  watches(): readonly {
    readonly informer: SharedInformer;
    readonly map: MapFunction;
    readonly options?: WatchesOptions<KubernetesObject>;
  }[];
}

/** Options of `source`. */
export interface SourceOptions {
  /**
   * Whether a source that rejects is logged and called again with backoff, 0.8 s to 30 s with up to 100 % jitter.
   * Otherwise its error ends the program.
   * @default false
   */
  readonly restarts?: boolean | undefined;
}

/** Adds keys to a controller's queue until the signal aborts, as controller-runtime's `source.Source`. */
export type Source = (queue: KeySink, signal: AbortSignal) => Promise<void>;
