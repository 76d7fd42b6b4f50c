import type { QueueMetrics, WorkqueueMetrics } from '../metrics/workqueue-metrics.ts';
import { noWorkqueueMetrics } from '../metrics/workqueue-metrics.ts';
import type { Clock } from '../util/clock.ts';
import { Deferred } from '../util/deferred.ts';
import { addCauses, newQueueItem, snapshotOf } from './queue-item.ts';
import type { Cause, QueueItem, WorkQueueSnapshot } from './queue-item.ts';
import { DelayedKeys } from './delayed-keys.ts';
import { exponentialLimiter } from './rate-limiter.ts';
import type { RateLimiter } from './rate-limiter.ts';
import { ReadyKeys } from './ready-keys.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';

const QUEUE_OPTIONS: OptionNames<WorkQueueOptions<unknown>> = {
  tenantOf: true,
  rateLimiter: true,
  metrics: true,
};

const ADD_OPTIONS: OptionNames<AddOptions> = {
  priority: true,
  afterMs: true,
  cause: true,
};

/** Priority of keys from an initial list or a resync. Changes have priority 0. */
export const LOW_PRIORITY = -100;

/** Dependencies of `WorkQueue`. */
export interface WorkQueueDeps {
  /** Name of the controller; label of the metrics. */
  readonly name: string;
  readonly clock: Clock;
}

/** Options of `WorkQueue`. */
export interface WorkQueueOptions<K> {
  /**
   * Returns the tenant of a key; tenants take turns.
   * @default one tenant for all
   */
  readonly tenantOf?: ((key: K) => string) | undefined;
  /**
   * Determines the delay of `addRateLimited`.
   * @default per key, 5 ms doubling to 5 min
   */
  readonly rateLimiter?: RateLimiter<K> | undefined;
  /** @default none */
  readonly metrics?: WorkqueueMetrics | undefined;
}

/** Options of `add`. */
export interface AddOptions {
  /**
   * A higher priority is processed first; any finite number. A queued key keeps the higher one.
   * @default 0
   */
  readonly priority?: number | undefined;
  /**
   * Delay in milliseconds. A queued key keeps the earlier time.
   * @default 0
   */
  readonly afterMs?: number | undefined;
  /** Why the key is added, for people; or the causes of a postponed sync. */
  readonly cause?: string | readonly Cause[] | undefined;
}

/** Options of `addRateLimited`. */
export interface RateLimitedOptions extends Omit<AddOptions, 'afterMs'> {
  /**
   * Minimum delay in milliseconds.
   * @default 0
   */
  readonly atLeastMs?: number | undefined;
}

/** A key in flight. It is not taken again before `done`. */
export interface TakenItem<K> {
  readonly key: K;
  /** Causes of all additions since the key was last taken, in order of addition. */
  readonly causes: readonly Cause[];
  /** Number of additions whose cause is not in `causes`. */
  readonly omittedCauses: number;
  readonly priority: number;
  /** Time from the first addition until the key was ready, in milliseconds: a backoff or a requeue delay. */
  readonly delayedMs: number;
  /** Time from ready until the key was taken, in milliseconds. */
  readonly queuedMs: number;
}

/**
 * Queue of keys to process: ready, delayed and in flight in one structure.
 *
 * - **No lost key.** Every added key is taken at some time after the addition.
 * - **No duplicates.** A key that is added several times before it is taken is taken once, at the earliest
 *   due time and the highest priority. A delay that an earlier addition has overtaken has no effect.
 * - **One worker per key.** A key in flight is not taken again before `done`. If it is added meanwhile, it
 *   is processed again afterwards.
 * - **Order.** By priority, then in turns between tenants, then first in first out, without starvation: see
 *   `ReadyKeys`. A delayed key arrives when its delay is over.
 * - **Shutdown** drops queued keys and ignores additions; keys in flight may finish.
 *
 * ```
 *            afterMs > 0                due             take                 done
 *   add ──────────────────▶ delayed ──────────▶ ready ──────▶ in flight ──────────────▶ gone
 *    └───────────────────────────────────────────▲                └── added meanwhile ──▶ ready
 * ```
 *
 * Adding, taking and finishing cost O(log n); there is one timer, for the earliest delay.
 */
export class WorkQueue<K> {
  readonly name: string;
  readonly #clock: Clock;
  readonly #tenantOf: (key: K) => string;
  readonly #limiter: RateLimiter<K>;
  readonly #metrics: QueueMetrics;

  /** Every key that waits to be processed, in any state. */
  readonly #items = new Map<K, QueueItem<K>>();
  /** The keys of the items that are `delayed`. */
  readonly #delayed: DelayedKeys<K>;
  /** The keys of the items that are `ready`. */
  readonly #ready = new ReadyKeys<K>();
  /** The keys in flight, with their start times. */
  readonly #processing = new Map<K, number>();
  /** Waiting callers of `take`, in order; empty while a key is ready. */
  readonly #takers = new Set<Deferred<TakenItem<K> | undefined>>();
  #idle: Deferred | undefined;
  #isShutDown = false;

  constructor(deps: WorkQueueDeps, options: WorkQueueOptions<K> = {}) {
    checkOptions(options, QUEUE_OPTIONS, 'WorkQueue');
    const {
      tenantOf = () => '',
      rateLimiter = exponentialLimiter(),
      metrics = noWorkqueueMetrics,
    } = options;
    this.name = deps.name;
    this.#clock = deps.clock;
    this.#tenantOf = tenantOf;
    this.#limiter = rateLimiter;
    this.#delayed = new DelayedKeys(deps.clock, (keys) => this.#onDue(keys));
    this.#metrics = metrics.queue(deps.name, this);
  }

  /** Number of ready keys. */
  get length(): number {
    return this.#ready.size;
  }

  /** True once `shutDown` was called. */
  get isShutDown(): boolean {
    return this.#isShutDown;
  }

  /** @throws {RangeError} if `priority` or `afterMs` is not a finite number */
  add(key: K, options: AddOptions = {}): void {
    checkOptions(options, ADD_OPTIONS, 'WorkQueue.add');
    const { priority = 0, afterMs = 0, cause } = options;
    requireFinite('priority', priority);
    requireFinite('afterMs', afterMs);
    if (this.#isShutDown) return;
    if (afterMs > 0) this.#metrics.retried();
    const now = this.#clock.monotonic();
    this.#merge(key, now + Math.max(0, afterMs), priority, cause, now);
    this.#serveTakers();
  }

  /**
   * Adds `key` after the delay of the rate limiter, or `atLeastMs` if that is longer.
   * @returns the delay in milliseconds; undefined if the queue is shut down
   */
  addRateLimited(
    key: K,
    { atLeastMs = 0, ...options }: RateLimitedOptions = {},
  ): number | undefined {
    if (this.#isShutDown) return undefined;
    const afterMs = Math.max(atLeastMs, this.#limiter.when(key));
    this.add(key, { ...options, afterMs });
    return afterMs;
  }

  /** Resets the backoff of `key`. Does not remove the key from the queue. */
  forget(key: K): void {
    this.#limiter.forget(key);
  }

  /** Number of failures of `key` since `forget`. */
  retries(key: K): number {
    return this.#limiter.retries(key);
  }

  /**
   * Waits for the next key; undefined after the shutdown of the queue or an abort of `signal`. The caller
   * must call `done` for a taken key.
   */
  async take(signal?: AbortSignal): Promise<TakenItem<K> | undefined> {
    if (signal?.aborted) return undefined;
    const taken = this.tryTake();
    if (taken || this.#isShutDown) return taken;
    const taker = new Deferred<TakenItem<K> | undefined>();
    this.#takers.add(taker);
    const leave = () => {
      if (this.#takers.delete(taker)) taker.resolve(undefined);
    };
    signal?.addEventListener('abort', leave, { once: true });
    try {
      return await taker.promise;
    } finally {
      signal?.removeEventListener('abort', leave);
    }
  }

  /** Returns the next key if one is ready. */
  tryTake(): TakenItem<K> | undefined {
    const key = this.#ready.next();
    const item = key === undefined ? undefined : this.#items.get(key);
    if (!item) return undefined;
    const now = this.#clock.monotonic();
    const queuedMs = now - item.readyAtMs;
    this.#items.delete(item.key);
    this.#processing.set(item.key, now);
    this.#metrics.taken(queuedMs);
    const { priority, causes, omittedCauses, sinceMs, readyAtMs } = item;
    const delayedMs = readyAtMs - sinceMs;
    return { key: item.key, causes, omittedCauses, priority, delayedMs, queuedMs };
  }

  /**
   * Ends the processing of `key`.
   * @throws {Error} if the key is not in flight
   */
  done(key: K): void {
    const since = this.#processing.get(key);
    if (since === undefined) throw new Error(`Key ${String(key)} is done but was not in flight`);
    this.#processing.delete(key);
    this.#metrics.finished(this.#clock.monotonic() - since);
    const item = this.#items.get(key);
    if (item?.state === 'held') {
      this.#enqueue(item);
      this.#serveTakers();
    }
    if (this.#processing.size === 0) {
      this.#idle?.resolve();
      this.#idle = undefined;
    }
  }

  /** Drops all queued keys and ignores additions. Final. */
  shutDown(): void {
    this.#isShutDown = true;
    this.#items.clear();
    this.#delayed.clear();
    this.#ready.clear();
    for (const taker of this.#takers) taker.resolve(undefined);
    this.#takers.clear();
  }

  /** Resolves when no key is in flight. */
  async idle(): Promise<void> {
    if (this.#processing.size === 0) return;
    this.#idle ??= new Deferred();
    await this.#idle.promise;
  }

  /** Processing time of each key in flight so far, in milliseconds. */
  inFlightMs(): number[] {
    const now = this.#clock.monotonic();
    return Array.from(this.#processing.values(), (since) => now - since);
  }

  /** Returns a copy of the current content. */
  snapshot(): WorkQueueSnapshot<K> {
    return snapshotOf(this.#items, this.#processing, this.#clock.monotonic());
  }

  /** Adds an item for `key`, or merges the addition into the existing one. */
  #merge(key: K, readyAtMs: number, priority: number, cause: AddOptions['cause'], now: number) {
    let item = this.#items.get(key);
    if (!item) {
      item = newQueueItem(key, this.#tenantOf(key), priority, now);
      this.#items.set(key, item);
    }
    if (cause !== undefined) addCauses(item, cause);
    if (priority > item.priority) {
      if (item.state === 'ready') this.#ready.remove(key, item.priority, item.tenant);
      item.priority = priority;
      if (item.state === 'ready') this.#ready.add(key, priority, item.tenant);
    }
    if (item.state !== 'delayed' || readyAtMs >= item.readyAtMs) return;
    item.readyAtMs = readyAtMs;
    if (readyAtMs > now) {
      this.#delayed.set(key, readyAtMs);
    } else {
      this.#delayed.delete(key);
      this.#makeReady(item);
    }
  }

  /** Makes all due keys ready before one is taken, so that their priorities apply. */
  #onDue(keys: readonly K[]): void {
    for (const key of keys) {
      const item = this.#items.get(key);
      if (item) this.#makeReady(item);
    }
    this.#serveTakers();
  }

  #makeReady(item: QueueItem<K>): void {
    this.#metrics.added();
    if (this.#processing.has(item.key)) item.state = 'held';
    else this.#enqueue(item);
  }

  #enqueue(item: QueueItem<K>): void {
    item.state = 'ready';
    this.#ready.add(item.key, item.priority, item.tenant);
  }

  #serveTakers(): void {
    for (const taker of this.#takers) {
      const taken = this.tryTake();
      if (!taken) return;
      this.#takers.delete(taker);
      taker.resolve(taken);
    }
  }
}

function requireFinite(field: string, value: number): void {
  if (!Number.isFinite(value)) {
    throw new RangeError(`${field} must be a finite number: got ${value}`);
  }
}
