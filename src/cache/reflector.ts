import { isApiError } from '../api/api-error.ts';
import type { ApiError } from '../api/api-error.ts';
import type { KubernetesObject } from '../api/object.ts';
import { isDeadConnection } from '../client/transport/connection-error.ts';
import { noInformerMetrics } from '../metrics/reflector-metrics.ts';
import type { InformerMetrics } from '../metrics/reflector-metrics.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { messageOf } from '../util/values.ts';
import type { Runnable } from '../util/runnable.ts';
import { ListPager } from './reflector-list.ts';
import type { DeltaSink } from './delta-queue.ts';
import {
  isBusy,
  isLostVersion,
  isPointInTime,
  isVeryShort,
  notOlderThan,
  reactionTo,
  SHORT_ABSENCE_MS,
  streamResourceVersion,
} from './reflector-state.ts';
import type {
  Freshness,
  Reaction,
  ReflectorState,
  WatchEnd,
  Watching,
  Working,
} from './reflector-state.ts';
import { readInitialState, WatchListSupport, WatchReader } from './reflector-watch.ts';
import { ObjectGuard } from './object-guard.ts';
import { ProgressClock } from './progress.ts';
import type { Progress } from './progress.ts';
import { limitsOf } from './reflector-options.ts';
import type { ReflectorDeps, ReflectorLimits, ReflectorOptions } from './reflector-options.ts';
import { RetryPolicy } from './reflector-retry.ts';
import type { WatchConnection } from './reflector-watch.ts';

/**
 * Mirrors a resource into a sink: the whole state first, then every change, in the server's order.
 *
 * A step function over a union of states; each step is one stream of the initial state, one list,
 * one whole watch, or one wait. Whatever fails, the next state follows from the failure, and there
 * is no state without a way on: a reflector ends only with its signal.
 *
 * It owns the resourceVersion. The mirror never goes back in time while the server keeps its
 * history. When a server has lost it, as by a restore of etcd, the mirror follows the server:
 * before a watch is resumed after a lost connection, a quorum read shows whether the server is
 * behind, and after an outage the state is fetched again.
 */
export class Reflector<T extends KubernetesObject> implements Runnable {
  readonly name: string;
  readonly #source: ListPager<T>;
  readonly #sink: DeltaSink<T>;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #metrics: InformerMetrics;
  readonly #watchList: WatchListSupport;
  readonly #limits: ReflectorLimits;
  readonly #guard: ObjectGuard;
  readonly #progress: ProgressClock;
  readonly #setbacks: RetryPolicy;
  readonly #reader: WatchReader<T>;
  /** The sink has objects that the server may have deleted. */
  #populated = false;
  /** `Clock.monotonic()` of the first sign that the server is absent; undefined while it is not. */
  #absentSinceMs: number | undefined;
  /** The next state is fetched by a quorum read, before anything else is watched. */
  #mustRelist = false;
  /** The watch that is read from. */
  #watched: WatchConnection<T> | undefined;

  constructor(name: string, deps: ReflectorDeps<T>, options: ReflectorOptions = {}) {
    const { source, sink, clock, random = Math.random, metrics = noInformerMetrics } = deps;
    const log = deps.log.with({ resource: name });
    const limits = limitsOf(options);
    const progress = new ProgressClock(clock, limits.maxInactiveMs);
    this.name = name;
    this.#sink = sink;
    this.#clock = clock;
    this.#log = log;
    this.#metrics = metrics;
    this.#watchList = deps.watchList ?? new WatchListSupport(clock);
    this.#limits = limits;
    this.#progress = progress;
    this.#source = new ListPager({ source, clock, random, metrics, progress, limits });
    this.#guard = new ObjectGuard(clock, log, metrics);
    const { troubles } = deps;
    this.#setbacks = new RetryPolicy({
      clock,
      log: deps.log,
      random,
      progress,
      resource: name,
      troubles,
    });
    this.#reader = new WatchReader({
      sink,
      guard: this.#guard,
      progress,
      clock,
      onFirstEvent: () => this.#setbacks.over(),
    });
  }

  get progress(): Progress {
    return this.#progress;
  }

  /** Fetches the state again, by a quorum read, instead of watching from the last resourceVersion. */
  relist(): void {
    this.#mustRelist = true;
    this.#watched?.close();
  }

  async run(signal: AbortSignal): Promise<void> {
    let state: ReflectorState<T> = { phase: 'streaming', freshness: 'any' };
    while (!signal.aborted) {
      this.#enter(state);
      state = await this.step(state, signal);
    }
    this.#setbacks.stop();
    this.#progress.enter('idle');
  }

  /** What follows from `state`. When `signal` aborts it returns soon; the answer is then of no use. */
  async step(state: ReflectorState<T>, signal: AbortSignal): Promise<ReflectorState<T>> {
    switch (state.phase) {
      case 'streaming':
        return this.#stream(state.freshness, signal);
      case 'listing':
        return this.#list(state.freshness, signal);
      case 'watching':
        return this.#watch(state, signal);
      case 'waiting':
        await this.#clock.sleep(state.delayMs, signal);
        return state.next;
    }
  }

  #enter(state: ReflectorState<T>): void {
    if (this.#progress.enter(state.phase, state.phase === 'waiting' ? state.reason : undefined)) {
      this.#log.v(3).info('Reflector goes on', { phase: state.phase });
    }
  }

  /** Any failure but a lost resourceVersion or a busy server leads to a list in the same round. */
  async #stream(freshness: Freshness, signal: AbortSignal): Promise<ReflectorState<T>> {
    const byPages: Working<T> = { phase: 'listing', freshness };
    if (!this.#watchList.usable) return byPages;
    const startedMs = this.#begin(freshness);
    let connection: WatchConnection<T> | undefined;
    try {
      connection = await this.#source.watch(
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
      if (signal.aborted) return byPages;
      this.#watchList.refused();
      this.#log.v(2).info('The stream of the initial state was not completed; listing instead');
    } catch (error) {
      connection?.close();
      if (signal.aborted) return byPages;
      if (isLostVersion(error) && freshness !== 'latest') {
        return { phase: 'streaming', freshness: 'latest' };
      }
      if (isApiError(error, 'tooManyRequests')) {
        return this.#setbacks.retry(error, 'watch', { phase: 'streaming', freshness });
      }
      if (isApiError(error, 'invalid', 'badRequest', 'methodNotAllowed', 'notAcceptable')) {
        this.#watchList.refused();
      }
      this.#log.v(4).info('Could not stream the initial state; listing instead', {
        err: messageOf(error),
      });
    }
    connection?.close();
    return byPages;
  }

  async #list(freshness: Freshness, signal: AbortSignal): Promise<ReflectorState<T>> {
    const startedMs = this.#begin(freshness);
    try {
      const list = await this.#source.list(freshness, signal);
      const objects = list.items.filter((item) => this.#guard.admits(item));
      await this.#replace(objects, list.resourceVersion, startedMs, freshness);
      return { phase: 'watching', resourceVersion: list.resourceVersion };
    } catch (error) {
      if (signal.aborted) return { phase: 'listing', freshness };
      if (isApiError(error, 'notFound')) return this.#missing(error);
      // What a server cannot read of the request may be the resourceVersion, if another wrote it.
      const unread = typeof freshness === 'object' && isApiError(error, 'badRequest', 'invalid');
      const lost = isLostVersion(error) || unread;
      if (lost && freshness !== 'latest') return { phase: 'listing', freshness: 'latest' };
      // As after a watch that was refused: the server may come back with another history.
      const next = typeof freshness === 'object' && !isBusy(error) ? 'latest' : freshness;
      return this.#setbacks.retry(error, 'list', { phase: 'streaming', freshness: next });
    }
  }

  /**
   * The server answers that there is no such resource. Where there was one, its objects went with
   * it; where there was none yet, nothing is known to be empty. What appears later under this name
   * may be another resource: none of the old resourceVersions is asked for.
   */
  async #missing(error: ApiError): Promise<ReflectorState<T>> {
    if (this.#populated) {
      this.#populated = false;
      const { resourceVersion } = this.#progress;
      await this.#sink.push({ type: 'replaced', objects: [], resourceVersion });
    }
    const waiting = this.#setbacks.retry<T>(error, 'list', {
      phase: 'streaming',
      freshness: 'latest',
    });
    this.#progress.missing = true;
    return waiting;
  }

  async #watch(state: Watching<T>, signal: AbortSignal): Promise<ReflectorState<T>> {
    const end = await this.#read(state, signal);
    if (signal.aborted) return state;
    const error = 'error' in end ? end.error : undefined;
    if (isBusy(error)) this.#absentSinceMs = undefined;
    else this.#absentSinceMs ??= this.#clock.monotonic();
    const { wait, next, trouble } = reactionTo(end);
    const then = this.#after(next);
    if (this.#mustRelist) return then;
    if (trouble !== undefined) return this.#setbacks.retry(trouble, 'watch', then);
    this.#log.v(isApiError(error, 'tooManyRequests') ? 2 : 4).info('Watch closed', {
      how: end.how,
      ...(error === undefined ? {} : { err: messageOf(error) }),
    });
    return wait ? this.#setbacks.wait(error, then) : then;
  }

  #after(next: Reaction['next']): Working<T> {
    const { resourceVersion, isStale } = this.#progress;
    // After so long a silence the process was suspended, or cut off, for longer than a restore takes.
    if (this.#mustRelist || isStale || next === 'relistLatest') {
      return { phase: 'streaming', freshness: 'latest' };
    }
    if (next === 'relist' || !isPointInTime(resourceVersion)) {
      return { phase: 'streaming', freshness: notOlderThan(resourceVersion) };
    }
    return { phase: 'watching', resourceVersion, ...(next === 'verify' ? { verify: true } : {}) };
  }

  /** One watch, from its beginning to its end. */
  async #read(state: Watching<T>, signal: AbortSignal): Promise<WatchEnd> {
    const { resourceVersion, verify = false } = state;
    let { connection } = state;
    try {
      if (verify) {
        const hasReached = await this.#source.hasReached(resourceVersion, signal);
        if (!hasReached) return { how: 'behind' };
        const nowMs = this.#clock.monotonic();
        const absentMs = nowMs - (this.#absentSinceMs ?? nowMs);
        if (absentMs >= SHORT_ABSENCE_MS) return { how: 'wasAbsent' };
        this.#absentSinceMs = undefined;
      }
      connection ??= await this.#source.watch({ resourceVersion }, signal);
    } catch (error) {
      return { how: 'refused', error };
    }
    this.#absentSinceMs = undefined;
    this.#watched = connection;
    if (this.#mustRelist) connection.close();
    const watchOver = this.#setbacks.watchStands();
    const end = await this.#reader.read(connection, isPointInTime(resourceVersion));
    watchOver();
    connection.close();
    this.#watched = undefined;
    this.#progress.listenTo(undefined);
    this.#metrics.watchEnded(end.lastedMs, end.events, isVeryShort(end));
    if (!connection.stalled && !(end.how === 'cut' && isDeadConnection(end.error))) return end;
    this.#progress.stalls++;
    this.#metrics.watchStalled();
    this.#log.v(2).info('The watch was silent; beginning it anew', {
      inactiveMs: Math.round(this.#clock.monotonic() - connection.lastByteMs),
    });
    return { how: 'stalled' };
  }

  /** @returns when the state is asked for */
  #begin(freshness: Freshness): number {
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
    this.#setbacks.served();
    this.#populated = true;
    const tookMs = Math.round(this.#clock.monotonic() - startedMs);
    this.#metrics.listed(tookMs, objects.length);
    this.#log.v(3).info('Fetched the state', { count: objects.length, tookMs, resourceVersion });
    await this.#sink.push({
      type: 'replaced',
      objects,
      resourceVersion,
      ...(freshness === 'latest' ? { quorumReadMs: startedMs } : {}),
    });
  }
}
