import type { KubernetesObject } from '../api/object.ts';
import type { ObjectKey } from '../api/object-key.ts';
import type { Client } from '../client/client.ts';
import type { ReconcileMetrics } from '../metrics/reconcile-metrics.ts';
import type { WorkqueueMetrics } from '../metrics/workqueue-metrics.ts';
import type { EventRecorder } from '../record/event-recorder.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import type { Cause } from '../workqueue/queue-item.ts';
import type { Outcome } from '../workqueue/outcome.ts';
import type { RateLimiter } from '../workqueue/rate-limiter.ts';
import type { SyncReport } from '../workqueue/sync-report.ts';
import type { Controller } from './controller.ts';
import type { KeySink, MapFunction } from './enqueue.ts';
import type { EndedCall } from './observed-client.ts';
import type { Predicate } from './predicate.ts';
import type { SyncHistory } from './sync-history.ts';
import type { Sharding } from './serve-shards.ts';

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
 * retried with backoff, or `TerminalError` when a retry could not help. The backoff is 5 ms doubling to
 * 5 min, and begins at 5 s if the server has rejected an object as invalid. Runs for one key never
 * overlap.
 */
export type SyncHandler = (key: ObjectKey, context: SyncContext) => Promise<Outcome>;

/** Dependencies of `Controller`. */
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
  readonly history?: SyncHistory | undefined;
  /**
   * Numbers in [0, 1), for the names of runs.
   * @default Math.random
   */
  readonly random?: (() => number) | undefined;
  /** @default none */
  readonly metrics?: ControllerMetrics | undefined;
  /**
   * That several processes share the work: only keys of shards that this one holds run here.
   * @default every key does
   */
  readonly sharding?: Sharding | undefined;
  /**
   * Is told of all that the controller does.
   * @default nobody is
   */
  readonly observe?: ((controller: Controller) => ControllerObserver) | undefined;
}

/** Somebody who watches a controller at work. */
export interface ControllerObserver {
  /** A call made by a run of `key` has ended. */
  called(key: ObjectKey, call: EndedCall): void;
  /** A run has ended, or a key was put off; whatever comes next for it is in the queue already. */
  ended(report: SyncReport<ObjectKey>): void;
}

export interface ControllerMetrics {
  readonly workqueue: WorkqueueMetrics;
  readonly reconcile: ReconcileMetrics;
}

/** Options of `Controller`. */
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
  readonly concurrency?: number | undefined;
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
   * Maps an object without an owner of the kind to the owners that want a child of its name: they wait
   * until the name is free. Keys that are not in the cache of the owners are ignored. Use `keyOf` if
   * children have the name of their owner, `mapByChildName` if an index knows the names.
   * @default changes of such objects enqueue nothing
   */
  readonly orNamed?: MapFunction<T> | undefined;
}

/** Adds keys to a controller's queue until the signal aborts, as controller-runtime's `source.Source`. */
export type Source = (queue: KeySink, signal: AbortSignal) => Promise<void>;
