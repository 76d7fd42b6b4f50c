import type { QueueMetrics, WorkqueueMetrics } from '../metrics/workqueue-metrics.ts';
import { noWorkqueueMetrics } from '../metrics/no-metrics.ts';
import type { Clock } from '../util/clock.ts';
import { Deferred } from '../util/deferred.ts';
import { LinkedList } from '../util/linked-list.ts';
import { addCauses, newQueueItem, snapshotOf } from './queue-item.ts';
import type {
  Cause,
  FieldChange,
  QueueItem,
  SnapshotOptions,
  WorkQueueSnapshot,
} from './queue-item.ts';
import { DelayedKeys } from './delayed-keys.ts';
import { exponentialLimiter } from './rate-limiter.ts';
import type { RateLimiter } from './rate-limiter.ts';
import { ReadyKeys } from './ready-keys.ts';

/** Priority of keys from an initial list or a resync. Changes have priority 0. */
export const LOW_PRIORITY = -100;

/** Dependencies of {@link WorkQueue}. */
export interface WorkQueueDeps {
  /** Name of the controller; label of the metrics. */
  readonly name: string;
  readonly clock: Clock;
}

/** Options of {@link WorkQueue}. */
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
  /**
   * Why the key is added when `afterMs` is over. It is not a cause if another addition makes the key ready before.
   * @default none
   */
  readonly dueCause?: string | undefined;
  /**
   * The changed fields, if the cause is one update.
   * @default not recorded
   */
  readonly changes?: readonly FieldChange[] | undefined;
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
  /** Time from ready until the key was taken, in milliseconds; not before the workers of a pool started. */
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
 * Adding, taking and finishing a key cost one look-up in a Map each, or none; a delay costs O(log n). There
 * is one timer, for the earliest delay.
 *
 * @example
 * ```ts
 * import { systemClock } from 'crd-controller';
 * import { WorkQueue } from 'crd-controller/workqueue';
 *
 * const queue = new WorkQueue<string>({ name: 'mail', clock: systemClock });
 * queue.add('alice');
 * queue.add('alice'); // Merged with the first.
 * console.log(queue.length); // prints: 1
 * ```
 */
export class WorkQueue<K> {
  readonly name: string;
  readonly #clock: Clock;
  readonly #tenantOf: (key: K) => string;
  readonly #limiter: RateLimiter<K>;
  readonly #metrics: QueueMetrics;

  /** One item for each key. A further one of a key in flight is in its `again`. */
  readonly #items = new Map<K, QueueItem<K>>();
  readonly #delayed: DelayedKeys<QueueItem<K>>;
  readonly #ready = new ReadyKeys<QueueItem<K>>();
  readonly #inFlight = new LinkedList<QueueItem<K>>();
  /** Waiting callers of `take`, in order; empty while a key is ready. */
  readonly #takers = new Set<Deferred<TakenItem<K> | undefined>>();
  #idle: Deferred | undefined;
  #isShutDown = false;
  /** `Clock.monotonic()` from which ready keys wait at the earliest. */
  #workersSinceMs = 0;

  constructor(deps: WorkQueueDeps, options: WorkQueueOptions<K> = {}) {
    const {
      tenantOf = () => '',
      rateLimiter = exponentialLimiter(),
      metrics = noWorkqueueMetrics,
    } = options;
    this.name = deps.name;
    this.#clock = deps.clock;
    this.#tenantOf = tenantOf;
    this.#limiter = rateLimiter;
    this.#delayed = new DelayedKeys(deps.clock, (items) => this.#onDue(items));
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

  /** Called when a pool is created: keys do not wait until its workers start, as in a standby replica. */
  expectWorkers(): void {
    this.#workersSinceMs = Number.POSITIVE_INFINITY;
  }

  /** Called when the workers start: keys that are ready wait from now on. */
  workersStarted(): void {
    this.#workersSinceMs = this.#clock.monotonic();
  }

  /** @throws {RangeError} if `priority` or `afterMs` is not a finite number */
  add(key: K, options: AddOptions = {}): void {
    const { priority = 0, afterMs = 0, cause, dueCause, changes } = options;
    requireFinite('priority', priority);
    requireFinite('afterMs', afterMs);
    if (this.#isShutDown) return;
    if (afterMs > 0) this.#metrics.retried();
    const known = this.#items.get(key);
    const waiting = known?.state === 'inFlight' ? known.again : known;
    if (waiting) {
      if (cause !== undefined) addCauses(waiting, cause, changes);
      if (priority > waiting.priority) this.#raise(waiting, priority);
      if (waiting.state === 'delayed') this.#advance(waiting, options, known !== waiting);
      return;
    }
    const now = this.#clock.monotonic();
    const item = newQueueItem(key, known?.tenant ?? this.#tenantOf(key), priority, now);
    if (cause !== undefined) addCauses(item, cause, changes);
    if (known) known.again = item;
    else this.#items.set(key, item);
    item.dueCause = dueCause;
    if (afterMs > 0) this.#delayed.set(item, now + afterMs);
    else this.#makeReady(item, known !== undefined);
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
    const item = this.#ready.next();
    if (!item) return undefined;
    const { key, causes, omittedCauses, priority, sinceMs, readyAtMs } = item;
    const now = this.#clock.monotonic();
    const queuedMs =
      readyAtMs < this.#workersSinceMs ? Math.max(0, now - this.#workersSinceMs) : now - readyAtMs;
    item.state = 'inFlight';
    item.takenAtMs = now;
    this.#inFlight.append(item);
    this.#metrics.taken(queuedMs);
    return { key, causes, omittedCauses, priority, delayedMs: readyAtMs - sinceMs, queuedMs };
  }

  /**
   * Ends the processing of `key`. Returns how long it was in flight, in milliseconds.
   * @throws {Error} if the key is not in flight
   */
  done(key: K): number {
    const item = this.#items.get(key);
    if (item?.state !== 'inFlight') {
      throw new Error(`Key ${String(key)} is done but was not in flight`);
    }
    const { again } = item;
    this.#inFlight.remove(item);
    const tookMs = this.#clock.monotonic() - item.takenAtMs;
    this.#metrics.finished(tookMs);
    if (again) this.#items.set(key, again);
    else this.#items.delete(key);
    if (again?.state === 'held') {
      this.#enqueue(again);
      this.#serveTakers();
    }
    if (!this.#inFlight.first) {
      this.#idle?.resolve();
      this.#idle = undefined;
    }
    return tookMs;
  }

  /** Drops all queued keys and ignores additions. Final. */
  shutDown(): void {
    this.#isShutDown = true;
    this.#items.clear();
    for (const item of this.#inFlight) {
      item.again = undefined;
      this.#items.set(item.key, item);
    }
    this.#delayed.clear();
    this.#ready.clear();
    for (const taker of this.#takers) taker.resolve(undefined);
    this.#takers.clear();
  }

  /** Resolves when no key is in flight. */
  async idle(): Promise<void> {
    if (!this.#inFlight.first) return;
    this.#idle ??= new Deferred();
    await this.#idle.promise;
  }

  /** Processing time of each key in flight so far, in milliseconds. */
  inFlightMs(): number[] {
    const now = this.#clock.monotonic();
    return Array.from(this.#inFlight, ({ takenAtMs }) => now - takenAtMs);
  }

  /** Returns a copy of the current content. */
  snapshot({ limit, key }: SnapshotOptions<K> = {}): WorkQueueSnapshot<K> {
    const item = key === undefined ? undefined : this.#items.get(key);
    const items = key === undefined ? this.#items.values() : item ? [item] : [];
    const inFlight = [...this.#inFlight].filter((one) => key === undefined || one.key === key);
    const nowMs = this.#clock.monotonic();
    return snapshotOf(items, inFlight, { nowMs, workersSinceMs: this.#workersSinceMs, limit });
  }

  /** Raises the priority of an item that waits. */
  #raise(item: QueueItem<K>, priority: number): void {
    const isReady = item.state === 'ready';
    if (isReady) this.#ready.remove(item);
    item.priority = priority;
    if (isReady) this.#ready.add(item);
  }

  /** Applies a further addition of a delayed item if it is due earlier. */
  #advance(item: QueueItem<K>, { afterMs = 0, dueCause }: AddOptions, isInFlight: boolean): void {
    const readyAtMs = this.#clock.monotonic() + Math.max(0, afterMs);
    if (readyAtMs >= item.readyAtMs) return;
    item.dueCause = dueCause;
    if (afterMs > 0) {
      this.#delayed.set(item, readyAtMs);
      return;
    }
    this.#delayed.delete(item);
    item.readyAtMs = readyAtMs;
    this.#makeReady(item, isInFlight);
    this.#serveTakers();
  }

  /** Makes all due keys ready before one is taken, so that their priorities apply. */
  #onDue(items: readonly QueueItem<K>[]): void {
    for (const item of items) this.#makeReady(item, this.#items.get(item.key) !== item);
    this.#serveTakers();
  }

  #makeReady(item: QueueItem<K>, isInFlight: boolean): void {
    this.#metrics.added();
    if (item.dueCause !== undefined) addCauses(item, item.dueCause);
    item.dueCause = undefined;
    if (isInFlight) item.state = 'held';
    else this.#enqueue(item);
  }

  #enqueue(item: QueueItem<K>): void {
    item.state = 'ready';
    this.#ready.add(item);
  }

  #serveTakers(): void {
    if (this.#takers.size === 0) return;
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
