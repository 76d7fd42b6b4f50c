import { isApiError } from '../api/api-error.ts';
import type { ApiError } from '../api/api-error.ts';
import type { KubernetesObject } from '../api/object.ts';
import { isPointInTime } from '../api/resource-version.ts';
import { SHORT_ABSENCE_MS } from '../client/server-reachability.ts';
import { isDeadConnection } from '../client/transport/connection-error.ts';
import { noInformerMetrics } from '../metrics/no-metrics.ts';
import type { InformerMetrics } from '../metrics/reflector-metrics.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import type { Runnable } from '../util/runnable.ts';
import { messageOf } from '../util/values.ts';
import type { DeltaSink } from './delta-queue.ts';
import type { FailureLog } from './failure-log.ts';
import type { ListerWatcher, WatchRequest } from './lister-watcher.ts';
import { ObjectGuard } from './object-guard.ts';
import { ReflectorProgress } from './progress.ts';
import type { Progress } from './progress.ts';
import { ListPager } from './reflector-list.ts';
import { limitsOf } from './reflector-options.ts';
import type { ReflectorLimits, ReflectorOptions } from './reflector-options.ts';
import { RetryPolicy } from './reflector-retry.ts';
import {
  isBusy,
  isLostVersion,
  isVeryShort,
  notOlderThan,
  reactionTo,
  streamResourceVersion,
  WATCH_SECONDS,
} from './reflector-state.ts';
import type {
  RequestState,
  Freshness,
  Reaction,
  ReflectorState,
  Verifying,
  Watching,
} from './reflector-state.ts';
import {
  readInitialState,
  WatchConnection,
  WatchListSupport,
  WatchReader,
} from './reflector-watch.ts';
import type { WatchEnd } from './reflector-watch.ts';
import type { RelistSpread } from './relist-spread.ts';

/** Dependencies of `Reflector`. */
export interface ReflectorDeps<T extends KubernetesObject> {
  readonly source: ListerWatcher<T>;
  readonly sink: DeltaSink<T>;
  readonly clock: Clock;
  readonly log: Logger;
  /**
   * Returns numbers in [0, 1), for jitter.
   * @default Math.random
   */
  readonly random?: (() => number) | undefined;
  readonly metrics?: InformerMetrics | undefined;
  /**
   * Shared by the reflectors of one server.
   * @default a new one
   */
  readonly watchList?: WatchListSupport | undefined;
  /**
   * Shared by the reflectors of one server, so that failures of one cause are one log line.
   * @default a new one
   */
  readonly failureLog?: FailureLog | undefined;
  /**
   * Shared by the reflectors of one server, whose watches can expire together.
   * @default a new one
   */
  readonly relistSpread?: RelistSpread | undefined;
}

const INITIAL_STATE = { phase: 'streaming', freshness: 'any' } as const;

/**
 * Lists and watches one resource and pushes deltas into a sink: the whole state first, then every
 * change in the server's order.
 *
 * It is a step function over a union of states. Each step is one request or delay, or one whole watch. Every
 * failure leads to a next state, so a reflector ends only when its signal aborts:
 *
 *     streaming ─────────────────▶ watching ─▶ opening, verifying or streaming, as `reactionTo` returns
 *        └─▶ listing ─▶ opening ──────┘
 *                       verifying ─▶ opening
 *
 * The resourceVersion is part of the states and changes only with a list and with what a watch sends; `progress` shows
 * it. The cache never goes back in time while the server keeps its history. If the server has lost it, for
 * example by a restore of etcd, the cache follows the server. Before a watch is resumed after a lost
 * connection, a quorum read shows whether the server is behind. After an outage the reflector relists.
 */
export class Reflector<T extends KubernetesObject> implements Runnable {
  readonly name: string;
  readonly #source: ListerWatcher<T>;
  readonly #pager: ListPager<T>;
  readonly #sink: DeltaSink<T>;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #random: () => number;
  readonly #metrics: InformerMetrics;
  readonly #watchList: WatchListSupport;
  readonly #limits: ReflectorLimits;
  readonly #guard: ObjectGuard;
  readonly #progress: ReflectorProgress;
  readonly #retries: RetryPolicy;
  readonly #reader: WatchReader<T>;
  #state: ReflectorState<T> = INITIAL_STATE;
  /** The sink contains objects. */
  #populated = false;
  /** `relist` was called: the next list is a quorum read. */
  #mustRelist = false;

  constructor(name: string, deps: ReflectorDeps<T>, options: ReflectorOptions = {}) {
    const { source, sink, clock, random = Math.random, metrics = noInformerMetrics } = deps;
    const log = deps.log.with({ resource: name });
    const limits = limitsOf(options);
    const progress = new ReflectorProgress(clock, limits.maxInactiveMs);
    this.name = name;
    this.#source = source;
    this.#pager = new ListPager(source, clock, limits);
    this.#sink = sink;
    this.#clock = clock;
    this.#log = log;
    this.#random = random;
    this.#metrics = metrics;
    this.#watchList = deps.watchList ?? new WatchListSupport(clock);
    this.#limits = limits;
    this.#progress = progress;
    this.#guard = new ObjectGuard(clock, log, metrics);
    const { log: sharedLog, failureLog, relistSpread } = deps;
    const shared = { log: sharedLog, failureLog, relistSpread, reachability: source.reachability };
    this.#retries = new RetryPolicy({ ...shared, clock, random, progress, resource: name });
    this.#reader = new WatchReader({
      sink,
      guard: this.#guard,
      progress,
      clock,
      onFirstEvent: () => this.#retries.recovered(),
    });
  }

  get progress(): Progress {
    return this.#progress;
  }

  /** Lists again by a quorum read, instead of watching from the last resourceVersion. */
  relist(): void {
    this.#mustRelist = true;
    if (this.#state.phase === 'watching') this.#state.connection.close();
  }

  async run(signal: AbortSignal): Promise<void> {
    let state: ReflectorState<T> = INITIAL_STATE;
    while (!signal.aborted) state = await this.step(state, signal);
    this.#retries.stop();
    this.#guard.flush();
    this.#progress.enter('idle');
  }

  /** Returns the state that follows `state`. The result has no meaning after `signal` aborted. */
  async step(state: ReflectorState<T>, signal: AbortSignal): Promise<ReflectorState<T>> {
    this.#enter(state);
    switch (state.phase) {
      case 'streaming':
        return this.#stream(state.freshness, signal);
      case 'listing':
        return this.#list(state.freshness, signal);
      case 'verifying':
        return this.#verify(state, signal);
      case 'opening':
        return this.#open(state.resourceVersion, signal);
      case 'watching':
        return this.#watch(state, signal);
      case 'waiting':
        await this.#retries.pause(state, signal);
        return state.next;
    }
  }

  #enter(state: ReflectorState<T>): void {
    this.#state = state;
    const isBeforeWatch = state.phase === 'verifying' || state.phase === 'opening';
    const phase = isBeforeWatch ? 'watching' : state.phase;
    if (this.#progress.enter(phase, state.phase === 'waiting' ? state.reason : undefined)) {
      this.#log.v(3).info('Reflector changed state', { phase });
    }
  }

  /** After any failure except a lost resourceVersion or a busy server, a list follows without delay. */
  async #stream(freshness: Freshness, signal: AbortSignal): Promise<ReflectorState<T>> {
    const list: RequestState = { phase: 'listing', freshness };
    if (!this.#watchList.usable) return list;
    const startedMs = this.#startList(freshness);
    let connection: WatchConnection<T> | undefined;
    try {
      connection = await this.#openWatch(
        {
          resourceVersion: streamResourceVersion(freshness),
          resourceVersionMatch: 'NotOlderThan',
          sendInitialEvents: true,
        },
        signal,
      );
      const { streamPauseMs: pauseMs, streamTimeoutMs: timeoutMs } = this.#limits;
      const limits = { pauseMs, timeoutMs };
      const state = await readInitialState(connection, this.#guard, this.#clock, limits);
      if (state) {
        await this.#replace(state.objects, state.resourceVersion, startedMs, freshness);
        return { phase: 'watching', resourceVersion: state.resourceVersion, connection };
      }
      if (signal.aborted) return list;
      this.#watchList.refused();
      this.#log.v(2).info('Stream of the initial state was not completed; listing instead');
    } catch (error) {
      connection?.close();
      if (signal.aborted) return list;
      if (isLostVersion(error) && freshness !== 'latest') {
        return { phase: 'streaming', freshness: 'latest' };
      }
      if (isApiError(error, 'tooManyRequests')) {
        return this.#retries.retry(error, 'watch', { phase: 'streaming', freshness });
      }
      if (isApiError(error, 'invalid', 'badRequest', 'methodNotAllowed', 'notAcceptable')) {
        this.#watchList.refused();
      }
      this.#log.v(4).info('Could not stream the initial state; listing instead', {
        err: messageOf(error),
      });
    }
    connection?.close();
    return list;
  }

  async #list(freshness: Freshness, signal: AbortSignal): Promise<ReflectorState<T>> {
    const startedMs = this.#startList(freshness);
    try {
      const list = await this.#pager.list(freshness, signal);
      const objects = list.items.filter((item) => this.#guard.admits(item));
      await this.#replace(objects, list.resourceVersion, startedMs, freshness);
      return { phase: 'opening', resourceVersion: list.resourceVersion };
    } catch (error) {
      if (signal.aborted) return { phase: 'listing', freshness };
      if (isApiError(error, 'notFound')) return this.#missing(error);
      // A server may reject a resourceVersion of another server as malformed.
      const isRefused = typeof freshness === 'object' && isApiError(error, 'badRequest', 'invalid');
      if ((isLostVersion(error) || isRefused) && freshness !== 'latest')
        return { phase: 'listing', freshness: 'latest' };
      // As after a rejected watch, the server may return with another history.
      const next = typeof freshness === 'object' && !isBusy(error) ? 'latest' : freshness;
      return this.#retries.retry(error, 'list', { phase: 'streaming', freshness: next });
    }
  }

  /**
   * Handles a resource that is not served. Its cached objects were deleted with it; if it was never
   * served, an empty state would be a guess. A later resource of this name may be another one, so no
   * earlier resourceVersion is used for it.
   */
  async #missing(error: ApiError): Promise<ReflectorState<T>> {
    if (this.#populated) {
      this.#populated = false;
      const { resourceVersion } = this.#progress;
      await this.#sink.push({ type: 'replaced', objects: [], resourceVersion });
    }
    const waiting = this.#retries.retry(error, 'list', { phase: 'streaming', freshness: 'latest' });
    this.#progress.missing = true;
    return waiting;
  }

  async #verify(state: Verifying, signal: AbortSignal): Promise<ReflectorState<T>> {
    const { resourceVersion, absentSinceMs } = state;
    try {
      const hasReached = await this.#pager.hasReached(resourceVersion, signal);
      if (!hasReached) return this.#afterWatch({ how: 'serverBehind' }, state, signal);
    } catch (error) {
      return this.#afterWatch({ how: 'watchRejected', error }, state, signal);
    }
    const nowMs = this.#clock.monotonic();
    if (nowMs - (absentSinceMs ?? nowMs) >= SHORT_ABSENCE_MS) {
      return this.#afterWatch({ how: 'serverWasAbsent' }, state, signal);
    }
    return { phase: 'opening', resourceVersion };
  }

  async #open(resourceVersion: string, signal: AbortSignal): Promise<ReflectorState<T>> {
    try {
      const connection = await this.#openWatch({ resourceVersion }, signal);
      return { phase: 'watching', resourceVersion, connection };
    } catch (error) {
      return this.#afterWatch({ how: 'watchRejected', error }, { resourceVersion }, signal);
    }
  }

  async #watch(state: Watching<T>, signal: AbortSignal): Promise<ReflectorState<T>> {
    const { connection } = state;
    if (this.#mustRelist) connection.close();
    const watchEnded = this.#retries.watchStarted();
    const end = await this.#reader.read(connection, state.resourceVersion);
    watchEnded();
    connection.close();
    this.#progress.observe(undefined);
    this.#metrics.watchEnded(end.lastedMs, end.events, isVeryShort(end));
    const isStalled =
      connection.stalled || (end.how === 'connectionBroke' && isDeadConnection(end.error));
    if (isStalled) {
      this.#progress.stalls++;
      this.#metrics.watchStalled();
      this.#log.v(2).info('Watch stalled; re-establishing it', {
        inactiveMs: Math.round(this.#clock.monotonic() - connection.lastByteMs),
      });
    }
    const { returnedMs = -Infinity } = this.#source.reachability ?? {};
    if (returnedMs > connection.openedMs) {
      return this.#afterWatch({ how: 'serverWasAbsent' }, end, signal);
    }
    return this.#afterWatch(isStalled ? { how: 'stalled' } : end, end, signal);
  }

  /**
   * Returns the state after a watch that has ended, or could not start.
   *
   * @param last the last resourceVersion, and since when the server was absent before this watch
   */
  #afterWatch(
    end: WatchEnd,
    last: { readonly resourceVersion: string; readonly absentSinceMs?: number | undefined },
    signal: AbortSignal,
  ): ReflectorState<T> {
    const { resourceVersion } = last;
    const error = 'error' in end ? end.error : undefined;
    const absentSinceMs = isBusy(error)
      ? undefined
      : (last.absentSinceMs ?? this.#clock.monotonic());
    const verifying: Verifying = { phase: 'verifying', resourceVersion, absentSinceMs };
    if (signal.aborted) return verifying;
    const { wait, next, failure } = reactionTo(end);
    const then = this.#requestAfter(next, verifying);
    if (this.#mustRelist) return then;
    if (failure !== undefined) return this.#retries.retry(failure, 'watch', then);
    this.#log.v(isApiError(error, 'tooManyRequests') ? 2 : 4).info('Watch closed', {
      how: end.how,
      ...(error !== undefined && { err: messageOf(error) }),
    });
    return wait ? this.#retries.wait(error, then) : then;
  }

  #requestAfter(next: Reaction['next'], verifying: Verifying): RequestState {
    const { resourceVersion } = verifying;
    // The process was suspended or disconnected for longer than a restore of etcd takes.
    if (this.#mustRelist || this.#progress.isStale || next === 'relistLatest') {
      return { phase: 'streaming', freshness: 'latest' };
    }
    if (next === 'relist' || !isPointInTime(resourceVersion)) {
      return { phase: 'streaming', freshness: notOlderThan(resourceVersion) };
    }
    return next === 'verify' ? verifying : { phase: 'opening', resourceVersion };
  }

  /** Opens a watch whose activity is recorded in the progress. */
  async #openWatch(
    request: Omit<WatchRequest, 'signal'>,
    signal: AbortSignal,
  ): Promise<WatchConnection<T>> {
    const { min, max } = WATCH_SECONDS;
    this.#metrics.watchStarted();
    const connection = await WatchConnection.open(
      this.#source,
      {
        ...request,
        allowWatchBookmarks: true,
        timeoutSeconds: Math.floor(min + this.#random() * (max - min)),
      },
      { ...this.#limits, clock: this.#clock, signal },
    );
    this.#progress.observe(connection);
    return connection;
  }

  /** @returns the start time of the list */
  #startList(freshness: Freshness): number {
    if (freshness === 'latest') this.#mustRelist = false;
    return this.#clock.monotonic();
  }

  async #replace(
    objects: readonly T[],
    resourceVersion: string,
    startedMs: number,
    freshness: Freshness,
  ): Promise<void> {
    this.#progress.listed();
    this.#progress.resourceVersion = resourceVersion;
    this.#retries.listed();
    this.#populated = true;
    const tookMs = Math.round(this.#clock.monotonic() - startedMs);
    this.#metrics.listed(tookMs, objects.length);
    this.#log.v(3).info('Listed all objects', { count: objects.length, tookMs, resourceVersion });
    await this.#sink.push({
      type: 'replaced',
      objects,
      resourceVersion,
      ...(freshness === 'latest' && { quorumReadMs: startedMs }),
    });
  }
}
