import { isApiError } from '../api/api-error.ts';
import type { Event, EventsV1Event } from '../api/builtin.ts';
import { objectKey } from '../api/object-key.ts';
import type { Client } from '../client/client.ts';
import type { EventDropReason, EventMetrics } from '../metrics/event-metrics.ts';
import type { Clock } from '../util/clock.ts';
import { Deferred } from '../util/deferred.ts';
import { formatDuration } from '../util/duration.ts';
import type { LogFields, Logger } from '../util/logger.ts';
import { LruMap } from '../util/lru-map.ts';
import { RateLimitedLog } from '../util/rate-limited-log.ts';
import { runAll } from '../util/runnable.ts';
import type { Runnable } from '../util/runnable.ts';
import { settledBeforeAbort, untilAborted } from '../util/abort.ts';
import { EventBuffer } from './event-buffer.ts';
import type { PendingEvent } from './event-buffer.ts';
import { EventCorrelator } from './event-correlator.ts';
import { EventSeries } from './event-series.ts';
import { CORE_EVENTS, SERIES_EVENTS } from './event-api.ts';
import type { EventApiVersion } from './event-api.ts';
import type { Correlated, EventCorrelatorOptions } from './event-correlator.ts';
import { eventRecorder, NOT_SENT } from './event-recorder.ts';
import type { EventRecorder, RecordResult } from './event-recorder.ts';
import { classifyFailure, EventWriter } from './event-writer.ts';
import type { RecordedEvent } from './recorded-event.ts';

/** Dependencies of {@link EventBroadcaster}. */
export interface EventBroadcasterDeps {
  readonly client: Pick<Client, 'create' | 'patch'>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Options of {@link EventBroadcaster}. */
export interface EventBroadcasterOptions {
  /**
   * The host or Pod in the source of the events.
   * @default none
   */
  readonly host?: string | undefined;
  /**
   * Maximum number of different events that wait to be written.
   * @default 10_000
   */
  readonly capacity?: number | undefined;
  /**
   * Number of events written at the same time. Small, so that events do not delay other requests.
   * @default 4
   */
  readonly concurrency?: number | undefined;
  /**
   * Time that `run` may use after the abort to write buffered events, in milliseconds. A function is called at the
   * abort.
   * @default 5000
   */
  readonly flushTimeoutMs?: number | (() => number) | undefined;
  /** @default client-go's values */
  readonly correlation?: EventCorrelatorOptions | undefined;
  /** @default none */
  readonly metrics?: EventMetrics | undefined;
  /**
   * Numbers in [0, 1).
   * @default Math.random
   */
  readonly random?: (() => number) | undefined;
  /**
   * API in which events are written. `kubectl describe` and `kubectl events` show both. The program needs the verbs
   * create and patch on events of its group. With `events.k8s.io/v1`, repetitions are a series: the server has
   * its first two occurrences at once, and its count 6 minutes after the last one.
   * @default 'v1'
   */
  readonly apiVersion?: EventApiVersion | undefined;
  /**
   * Number of events that `recent` returns, for debug pages.
   * @default 0
   */
  readonly recent?: number | undefined;
  /**
   * Called with each event when it is recorded, before equal events become one.
   * @default none
   */
  readonly onEvent?: ((event: RecordedEvent) => void) | undefined;
}

/** Number of attempts before an event is dropped. */
const MAX_ATTEMPTS = 12;
/** Delay between attempts. The first delay is random up to this value, so that clients do not retry together. */
const RETRY_MS = 10_000;
/** Upper bound of a Retry-After of the server. */
const LONGEST_RETRY_MS = 60_000;
/** Factor of the concurrency after the abort, when events delay no other request. */
const STOP_FACTOR = 4;
/** Minimum time between two log lines with the same message. */
const LOG_PERIOD_MS = 60_000;

/**
 * Writes the events of all recorders to the server in the background.
 *
 * - **Recording does not block.** Events are correlated and buffered when they are recorded, and written by
 *   separate workers. Events recorded before `run` are written after it starts.
 * - **Bursts** of up to `capacity` different events are buffered; an event that is buffered already only
 *   increments its count. Further events are dropped, counted, and logged once a minute.
 * - **Order** is preserved for each object. A retried event delays only events of the same object.
 * - **Retries**: 12 attempts, 10 s apart, while the server is unreachable or overloaded. An event that the
 *   server rejects is dropped at once.
 * - **On abort** it accepts no further events, writes the buffered ones within `flushTimeoutMs` with four times as many writers
 *   and at most one more attempt each, and logs how many were lost.
 *
 * Each event is also logged at V(3).
 */
export class EventBroadcaster implements Runnable {
  readonly name = 'events';
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #eventLog: Logger;
  readonly #errors: RateLimitedLog;
  readonly #host: string | undefined;
  readonly #concurrency: number;
  readonly #flushTimeoutMs: () => number;
  readonly #metrics: EventMetrics | undefined;
  readonly #random: () => number;
  readonly #correlator: EventCorrelator;
  readonly #buffer: EventBuffer;
  readonly #writer: EventWriter<Event> | EventWriter<EventsV1Event>;
  readonly #timeOf: (ms: number) => string;
  readonly #recent: LruMap<string, RecordedEvent> | undefined;
  readonly #onEvent: ((event: RecordedEvent) => void) | undefined;
  /** Undefined if every repetition is written. */
  readonly #series: EventSeries | undefined;
  /** Aborts the requests in flight when the flush timeout expires. */
  readonly #flushDeadline = new AbortController();
  #isStopping = false;
  /** Events whose last attempt failed after the stop. */
  #lostAtStop = 0;

  constructor(deps: EventBroadcasterDeps, options: EventBroadcasterOptions = {}) {
    const { client, clock, log } = deps;
    const {
      host,
      capacity = 10_000,
      concurrency = 4,
      flushTimeoutMs = 5000,
      correlation = {},
      metrics,
      random = Math.random,
      apiVersion = 'v1',
      recent = 0,
    } = options;
    requirePositive('capacity', capacity);
    requirePositive('concurrency', concurrency);
    this.#clock = clock;
    this.#log = log;
    this.#eventLog = log.v(3);
    this.#errors = new RateLimitedLog(clock, { windowMs: LOG_PERIOD_MS });
    this.#host = host;
    this.#concurrency = concurrency;
    this.#flushTimeoutMs =
      typeof flushTimeoutMs === 'number' ? () => flushTimeoutMs : flushTimeoutMs;
    this.#metrics = metrics;
    this.#random = random;
    this.#onEvent = options.onEvent;
    this.#correlator = new EventCorrelator({ clock }, correlation);
    this.#buffer = new EventBuffer(clock, capacity);
    this.#recent = recent > 0 ? new LruMap(recent) : undefined;
    const isCore = apiVersion === 'v1';
    if (!isCore && apiVersion !== 'events.k8s.io/v1') {
      throw new RangeError(`apiVersion must be v1 or events.k8s.io/v1: got ${String(apiVersion)}`);
    }
    this.#writer = isCore
      ? new EventWriter(client, CORE_EVENTS)
      : new EventWriter(client, SERIES_EVENTS);
    const { timeOf, hasSeries } = isCore ? CORE_EVENTS : SERIES_EVENTS;
    this.#timeOf = timeOf;
    this.#series = hasSeries
      ? new EventSeries(clock, (occurrence) => void this.#send(occurrence))
      : undefined;
  }

  /** The events recorded last, oldest first, each with its current count. Includes those that were not written. */
  get recent(): readonly RecordedEvent[] {
    return this.#recent?.values() ?? [];
  }

  /** Returns a recorder for `component`, usually a controller. */
  recorder(component: string): EventRecorder {
    return eventRecorder({
      source: { component, ...(this.#host && { host: this.#host }) },
      sink: (event) => {
        this.#onEvent?.(event);
        return this.#record(event);
      },
      clock: this.#clock,
      log: this.#log,
      timeOf: this.#timeOf,
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    const writers = Array.from({ length: this.#concurrency }, () => () => this.#write());
    const lateWriters = Array.from(
      { length: (STOP_FACTOR - 1) * this.#concurrency },
      () => (end: AbortSignal) => untilAborted(end).then(() => this.#write()),
    );
    const series = this.#series;
    const refresh = series ? [(end: AbortSignal) => series.run(end)] : [];
    await runAll([...writers, ...lateWriters, ...refresh, (end) => this.#stop(end)], signal);
  }

  /**
   * Waits until all events are written, at most `timeoutMs` milliseconds.
   * @returns the number of events that are not written
   */
  async flush(timeoutMs: number): Promise<number> {
    this.#series?.flush();
    if (this.#buffer.size === 0) return 0;
    const waited = new Deferred();
    const wake = () => waited.resolve();
    const cancel = this.#clock.after(timeoutMs, wake);
    const unsubscribe = this.#buffer.onEmpty(wake);
    await waited.promise;
    cancel();
    unsubscribe();
    return this.#buffer.size;
  }

  #record(event: RecordedEvent): RecordResult {
    if (this.#eventLog.enabled) this.#eventLog.info('Event occurred', describe(event));
    if (this.#isStopping) {
      this.#drop('shutdown', event, 'Dropped event: the program is stopping');
      return NOT_SENT;
    }
    const correlated = this.#correlator.count(event);
    this.#recent?.set(correlated.key, correlated.event);
    if (this.#series?.holds(correlated)) return NOT_SENT;
    if (!this.#correlator.accepts(correlated)) {
      this.#metrics?.dropped('spam');
      return NOT_SENT;
    }
    return this.#send(correlated);
  }

  #send(correlated: Correlated): RecordResult {
    const { event } = correlated;
    const pending = this.#buffer.put(correlated.key, correlated.object, event);
    if (!pending) {
      this.#drop('buffer_full', event, 'Dropped event: too many are waiting to be written');
      return NOT_SENT;
    }
    const { promise } = pending.attempted;
    return {
      attempted: async (signal) =>
        void (await (signal ? settledBeforeAbort(promise, signal) : promise)),
    };
  }

  async #write(): Promise<void> {
    for (;;) {
      const pending = await this.#buffer.take();
      if (!pending) return;
      try {
        await this.#writer.write(pending.event, this.#flushDeadline.signal);
        this.#buffer.done(pending);
      } catch (error) {
        this.#settle(pending, error);
      }
    }
  }

  /** Retries or drops an event that could not be written. An event aborted at the stop is counted already. */
  #settle(pending: PendingEvent, error: unknown): void {
    if (this.#flushDeadline.signal.aborted) return;
    const { event, attempts } = pending;
    const failure = classifyFailure(error);
    if (failure === 'retry' && !this.#isStopping && attempts < MAX_ATTEMPTS) {
      const delayMs = this.#retryDelay(attempts, error);
      this.#buffer.retry(pending, delayMs);
      this.#logError(error, 'Could not write event; retrying', event, {
        attempt: attempts,
        retryAfter: formatDuration(delayMs),
        waiting: this.#buffer.size,
      });
      return;
    }
    this.#buffer.done(pending);
    if (failure === 'retry' && this.#isStopping) {
      this.#lostAtStop++;
    } else if (failure === 'unnecessary') {
      this.#log.v(5).info('Skipped event: it exists or its namespace is being deleted', {
        ...describe(event),
        err: error,
      });
    } else if (failure === 'impossible') {
      this.#drop('rejected', event, 'Dropped event: it cannot be sent as a request', error);
    } else if (failure === 'rejected') {
      this.#drop('rejected', event, 'Dropped event: the server rejected it', error);
    } else {
      this.#drop('retries_exhausted', event, 'Dropped event: every attempt failed', error);
    }
  }

  #retryDelay(attempts: number, error: unknown): number {
    const delayMs = attempts === 1 ? this.#random() * RETRY_MS : RETRY_MS;
    const asked = isApiError(error) ? (error.retryAfterMs ?? 0) : 0;
    return Math.max(delayMs, Math.min(asked, LONGEST_RETRY_MS));
  }

  #drop(reason: EventDropReason, event: RecordedEvent, message: string, error?: unknown): void {
    this.#metrics?.dropped(reason);
    this.#logError(error, message, event);
  }

  #logError(error: unknown, message: string, event: RecordedEvent, more: LogFields = {}): void {
    const fields = { ...describe(event), ...more };
    this.#errors.report(message, '', ({ times }) =>
      this.#log.error(error, message, times > 1 ? { ...fields, times } : fields),
    );
  }

  async #stop(end: AbortSignal): Promise<void> {
    await untilAborted(end);
    this.#isStopping = true;
    this.#buffer.endRetryDelays();
    this.#series?.flush();
    const waiting = this.#buffer.size;
    await this.flush(this.#flushTimeoutMs());
    const lost = this.#lostAtStop + this.#buffer.close();
    this.#errors.flush();
    this.#flushDeadline.abort(new Error('The flush timeout of events has expired'));
    if (lost > 0) {
      this.#metrics?.dropped('shutdown', lost);
      this.#log.error(undefined, 'Events were lost during shutdown', { lost, waiting });
    } else {
      this.#log.v(2).info('Flushed events', { waiting });
    }
  }
}

function describe({ involvedObject, type, reason, message }: RecordedEvent): LogFields {
  const { namespace, name, fieldPath, kind, apiVersion } = involvedObject;
  const object = objectKey(namespace, name);
  return { object, fieldPath: fieldPath ?? '', kind, apiVersion, type, reason, message };
}

function requirePositive(field: string, value: number): void {
  if (!Number.isSafeInteger(value) || value < 1) {
    throw new RangeError(`${field} must be a positive integer: got ${value}`);
  }
}
