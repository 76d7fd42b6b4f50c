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

/** Of keys that nobody waits for: those of the first list and of resyncs. Fresh changes have 0. */
export const LOW_PRIORITY = -100;

/** Dependencies of `WorkQueue`. */
export interface WorkQueueDeps {
  /** The controller it works for; label of its metrics. */
  readonly name: string;
  readonly clock: Clock;
}

/** Options of `WorkQueue`. */
export interface WorkQueueOptions<K> {
  /**
   * Whose key it is: tenants take turns.
   * @default one tenant for all
   */
  readonly tenantOf?: ((key: K) => string) | undefined;
  /**
   * What `addRateLimited` waits.
   * @default per key, 5 ms doubling to 5 min
   */
  readonly rateLimiter?: RateLimiter<K> | undefined;
  /** @default none */
  readonly metrics?: WorkqueueMetrics | undefined;
}

/** Options of `Add`. */
export interface AddOptions {
  /**
   * Higher runs earlier; any finite number. A key that is waiting already keeps the higher one.
   * @default 0
   */
  readonly priority?: number | undefined;
  /**
   * Milliseconds before the key becomes ready. A key that is waiting already keeps the earlier time.
   * @default 0
   */
  readonly afterMs?: number | undefined;
  /** Why the key is added, for people; or all the causes of a run that was put off. */
  readonly cause?: string | readonly Cause[] | undefined;
}

/** Options of `RateLimited`. */
export interface RateLimitedOptions extends Omit<AddOptions, 'afterMs'> {
  /**
   * The shortest delay in milliseconds, whatever the rate limiter asks for.
   * @default 0
   */
  readonly atLeastMs?: number | undefined;
}

/** A key in flight: its holder, and nobody else, has it until `done`. */
export interface TakenItem<K> {
  readonly key: K;
  /** Why it runs: the causes of all additions since it was last handed out, first ones first. */
  readonly causes: readonly Cause[];
  /** How many additions had a cause that found no place in `causes`. */
  readonly omittedCauses: number;
  readonly priority: number;
  /** From its first addition until it was ready, in milliseconds: a backoff, or a plan. */
  readonly delayedMs: number;
  /** How long it was ready, in milliseconds. */
  readonly queuedMs: number;
}

/**
 * Which keys must be dealt with, when, and in which order: ready, delayed and in flight in one
 * structure.
 *
 * - **Nothing is lost.** A key that was added is handed out at some time after the addition.
 * - **Nothing is doubled.** However often a key is added before it is handed out, that is once, at
 *   the earliest of the times wished for and at the highest of the priorities; a delay that an
 *   earlier addition has overtaken leaves nothing behind.
 * - **One holder.** A key in flight is not handed out again before `done`. Added meanwhile, it runs
 *   once more afterwards.
 * - **Order.** By priority, then in turns between tenants, then first in first out, and nobody
 *   starves: see `ReadyKeys`. A key whose delay is over arrives at that moment.
 * - **Shutdown** forgets what waits, ignores what is added and hands out nothing more; keys in
 *   flight may finish.
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

  /** Every key that shall run, whatever its state. */
  readonly #wishes = new Map<K, QueueItem<K>>();
  /** The keys of the wishes that are `delayed`. */
  readonly #delayed: DelayedKeys<K>;
  /** The keys of the wishes that are `ready`. */
  readonly #ready = new ReadyKeys<K>();
  /** The keys in flight, and since when. */
  readonly #processing = new Map<K, number>();
  /** Takers that wait, first come first served; empty whenever a key is ready. */
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

  /** Number of keys that are ready. */
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
    this.#handOut();
  }

  /**
   * Adds `key` after as long as the rate limiter asks for, or `atLeastMs` if that is longer.
   * @returns that delay in milliseconds; undefined if the queue is shut down
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

  /** Ends the backoff of `key`: its next failure is a first one. An addition it has stays. */
  forget(key: K): void {
    this.#limiter.forget(key);
  }

  /** Failures of `key` since it was last forgotten. */
  retries(key: K): number {
    return this.#limiter.retries(key);
  }

  /**
   * The next key, as soon as there is one; undefined once the queue is shut down or `signal` aborts.
   * A key that was given must be given back by `done`, whatever happened meanwhile.
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

  /** The next key if there is one right now. */
  tryTake(): TakenItem<K> | undefined {
    const key = this.#ready.next();
    const wish = key === undefined ? undefined : this.#wishes.get(key);
    if (!wish) return undefined;
    const now = this.#clock.monotonic();
    const queuedMs = now - wish.readyAtMs;
    this.#wishes.delete(wish.key);
    this.#processing.set(wish.key, now);
    this.#metrics.taken(queuedMs);
    const { priority, causes, omittedCauses, sinceMs, readyAtMs } = wish;
    const delayedMs = readyAtMs - sinceMs;
    return { key: wish.key, causes, omittedCauses, priority, delayedMs, queuedMs };
  }

  /**
   * Gives `key` back.
   * @throws {Error} if it is not in flight: two holders, or none, believe to have it
   */
  done(key: K): void {
    const since = this.#processing.get(key);
    if (since === undefined) throw new Error(`Key ${String(key)} is done but was not in flight`);
    this.#processing.delete(key);
    this.#metrics.finished(this.#clock.monotonic() - since);
    const wish = this.#wishes.get(key);
    if (wish?.state === 'held') {
      this.#line(wish);
      this.#handOut();
    }
    if (this.#processing.size === 0) {
      this.#idle?.resolve();
      this.#idle = undefined;
    }
  }

  /** Hands out nothing more and takes nothing in; for good. */
  shutDown(): void {
    this.#isShutDown = true;
    this.#wishes.clear();
    this.#delayed.clear();
    this.#ready.clear();
    for (const taker of this.#takers) taker.resolve(undefined);
    this.#takers.clear();
  }

  /** Resolves as soon as no key is in flight. */
  async idle(): Promise<void> {
    if (this.#processing.size === 0) return;
    this.#idle ??= new Deferred();
    await this.#idle.promise;
  }

  /** For how long each key in flight has been so, in milliseconds. */
  inFlightMs(): number[] {
    const now = this.#clock.monotonic();
    return Array.from(this.#processing.values(), (since) => now - since);
  }

  /** The queue as it is now; a copy. */
  snapshot(): WorkQueueSnapshot<K> {
    return snapshotOf(this.#wishes, this.#processing, this.#clock.monotonic());
  }

  /** Makes a wish for `key`, or merges into the one it has. */
  #merge(key: K, readyAtMs: number, priority: number, cause: AddOptions['cause'], now: number) {
    let wish = this.#wishes.get(key);
    if (!wish) {
      wish = newQueueItem(key, this.#tenantOf(key), priority, now);
      this.#wishes.set(key, wish);
    }
    if (cause !== undefined) addCauses(wish, cause);
    if (priority > wish.priority) {
      if (wish.state === 'ready') this.#ready.remove(key, wish.priority, wish.tenant);
      wish.priority = priority;
      if (wish.state === 'ready') this.#ready.add(key, priority, wish.tenant);
    }
    if (wish.state !== 'delayed' || readyAtMs >= wish.readyAtMs) return;
    wish.readyAtMs = readyAtMs;
    if (readyAtMs > now) {
      this.#delayed.set(key, readyAtMs);
    } else {
      this.#delayed.delete(key);
      this.#makeReady(wish);
    }
  }

  /** Everything due arrives before anything is handed out, so that priorities count. */
  #onDue(keys: readonly K[]): void {
    for (const key of keys) {
      const wish = this.#wishes.get(key);
      if (wish) this.#makeReady(wish);
    }
    this.#handOut();
  }

  #makeReady(wish: QueueItem<K>): void {
    this.#metrics.added();
    if (this.#processing.has(wish.key)) wish.state = 'held';
    else this.#line(wish);
  }

  #line(wish: QueueItem<K>): void {
    wish.state = 'ready';
    this.#ready.add(wish.key, wish.priority, wish.tenant);
  }

  /** Serves the takers that wait. */
  #handOut(): void {
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
