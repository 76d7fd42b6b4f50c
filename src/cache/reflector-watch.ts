import { ApiError } from '../api/api-error.ts';
import type { KubernetesObject, WatchEvent } from '../api/object.ts';
import type { WatchStream } from '../client/client.ts';
import type { Clock } from '../util/clock.ts';
import type { ConnectionActivity } from '../util/http.ts';
import type { ListerWatcher, WatchRequest } from './lister-watcher.ts';
import type { ReflectorLimits } from './reflector-options.ts';
import { keyOf } from '../api/object-key.ts';
import type { DeltaSink } from './delta-queue.ts';
import { isOlderResourceVersion } from '../api/resource-version.ts';
import { isPointInTime } from './reflector-state.ts';
import type { ObjectGuard } from './object-guard.ts';
import type { ProgressClock } from './progress.ts';
import type { WatchEnd } from './reflector-state.ts';
import type { ObjectKey } from '../api/object-key.ts';

/** Options of `WatchConnection`. */
export interface WatchConnectionOptions extends Pick<ReflectorLimits, 'stallMs' | 'quietMs'> {
  readonly clock: Clock;
  /** Ends the connection. */
  readonly signal: AbortSignal;
}

/**
 * One open watch, read event by event. A watch on which no byte has arrived for `stallMs` is given
 * up, also while its answer is still awaited: a peer that vanished without a word looks exactly like
 * a quiet resource. If its connection is active, the watch may be silent for
 * `quietMs`; but not once it has sent bookmarks, which then are due.
 */
export class WatchConnection<T extends KubernetesObject> {
  /** `Clock.monotonic()` when the watch was asked for. */
  readonly openedMs: number;
  readonly #stream: WatchStream<T>;
  readonly #batches: AsyncIterator<readonly WatchEvent<T>[]>;
  /** The events that arrived last, and how many of them were read. */
  #batch: readonly WatchEvent<T>[] = [];
  #read = 0;
  readonly #lifeline: Lifeline;

  /** Rejects as `source.watch` does, or as unreachable if there was no answer for `stallMs`. */
  static async open<T extends KubernetesObject>(
    source: ListerWatcher<T>,
    request: WatchRequest,
    options: WatchConnectionOptions,
  ): Promise<WatchConnection<T>> {
    const lifeline = new Lifeline(options);
    try {
      const stream = await source.watch({ ...request, signal: lifeline.signal });
      lifeline.hold(stream);
      return new WatchConnection(stream, lifeline);
    } catch (error) {
      lifeline.cut(CLOSED);
      throw error;
    }
  }

  private constructor(stream: WatchStream<T>, lifeline: Lifeline) {
    this.openedMs = lifeline.openedMs;
    this.#stream = stream;
    this.#batches = (stream.batches?.() ?? oneByOne(stream))[Symbol.asyncIterator]();
    this.#lifeline = lifeline;
  }

  /** `Clock.monotonic()` when bytes last arrived. */
  get lastByteMs(): number {
    return this.#stream.lastByteMs;
  }

  /** Of the connection that carries the watch. */
  get activity(): ConnectionActivity | undefined {
    return this.#stream.activity;
  }

  /** True once the connection was given up because nothing arrived. */
  get stalled(): boolean {
    return this.#lifeline.stalled;
  }

  /** The next event; done when the server, the signal, a stall or `close` has ended the watch. */
  async next(): Promise<IteratorResult<WatchEvent<T>, undefined>> {
    for (;;) {
      const value = this.ready();
      if (value) return { done: false, value };
      const batch = await this.#batches.next();
      if (batch.done) return { done: true, value: undefined };
      this.#batch = batch.value;
      this.#read = 0;
    }
  }

  /** The next event if it has arrived already: `next`, without a promise for each. */
  ready(): WatchEvent<T> | undefined {
    if (this.#read === this.#batch.length || this.#lifeline.signal.aborted) return undefined;
    return this.#batch[this.#read++];
  }

  /** The watch has sent a bookmark, as it will about once a minute. */
  expectBookmarks(): void {
    this.#lifeline.expectBookmarks();
  }

  close(): void {
    this.#lifeline.cut(CLOSED);
  }
}

/** What an abort without a reason would make anew, stack and all, at the end of every watch. */
const CLOSED = new DOMException('The watch was closed', 'AbortError');

async function* oneByOne<E>(events: AsyncIterable<E>): AsyncGenerator<readonly E[], void> {
  for await (const event of events) yield [event];
}

type SignsOfLife = Pick<WatchStream<never>, 'lastByteMs' | 'activity'>;

/** What a connection hangs on: the owner's signal, its own abort, and the watchdog. */
class Lifeline {
  readonly openedMs: number;
  readonly #owner: AbortSignal;
  readonly #controller = new AbortController();
  readonly #watchdog: Watchdog;
  readonly #pulseCountsMs: number;
  #stream: SignsOfLife | undefined;
  #bookmarksDue = false;
  #stalled = false;

  constructor({ clock, stallMs, quietMs, signal }: WatchConnectionOptions) {
    this.openedMs = clock.monotonic();
    this.#owner = signal;
    this.#pulseCountsMs = quietMs - stallMs;
    this.#watchdog = new Watchdog(
      clock,
      stallMs,
      () => this.#lastLifeMs,
      () => {
        this.#stalled = true;
        const message = 'The watch was silent for too long';
        this.cut(new ApiError({ kind: 'unreachable', message }));
      },
    );
    signal.addEventListener('abort', this.#follow, { once: true });
    if (signal.aborted) this.#follow();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get stalled(): boolean {
    return this.#stalled;
  }

  hold(stream: SignsOfLife): void {
    this.#stream = stream;
  }

  expectBookmarks(): void {
    this.#bookmarksDue = true;
  }

  /** The activity of the connection counts as activity of the watch for a limited time after the last byte. */
  get #lastLifeMs(): number {
    const lastByteMs = Math.max(this.openedMs, this.#stream?.lastByteMs ?? 0);
    const pulseMs = this.#bookmarksDue ? 0 : (this.#stream?.activity?.lastMs ?? 0);
    return Math.max(lastByteMs, Math.min(pulseMs, lastByteMs + this.#pulseCountsMs));
  }

  cut(reason: unknown): void {
    this.#watchdog.stop();
    this.#owner.removeEventListener('abort', this.#follow);
    this.#controller.abort(reason);
  }

  readonly #follow = (): void => this.cut(this.#owner.reason);
}

/**
 * Calls `onSilence` once, when `lastLifeMs` has not moved for `limitMs`. One timer that re-arms
 * itself: a sign of life costs nothing but the number it leaves behind.
 */
export class Watchdog {
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #lastLifeMs: () => number;
  readonly #onSilence: () => void;
  #cancel: () => void;

  /** @param lastLifeMs `Clock.monotonic()` of the last sign of life */
  constructor(clock: Clock, limitMs: number, lastLifeMs: () => number, onSilence: () => void) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#lastLifeMs = lastLifeMs;
    this.#onSilence = onSilence;
    this.#cancel = clock.after(limitMs, this.#check);
  }

  stop(): void {
    this.#cancel();
  }

  readonly #check = (): void => {
    const leftMs = this.#lastLifeMs() + this.#limitMs - this.#clock.monotonic();
    if (leftMs <= 0) this.#onSilence();
    else this.#cancel = this.#clock.after(leftMs, this.#check);
  };
}

/** Dependencies of `WatchReader`. */
export interface WatchReaderDeps<T extends KubernetesObject> {
  readonly sink: DeltaSink<T>;
  readonly guard: ObjectGuard;
  readonly progress: ProgressClock;
  readonly clock: Clock;
  readonly onFirstEvent: () => void;
}

/**
 * Carries the events of a watch into the sink. Every change of every object of a resource passes
 * through here, so an event costs one delta and nothing else. The resourceVersion advances after
 * the sink has the event, never before.
 */
export class WatchReader<T extends KubernetesObject> {
  readonly #deps: WatchReaderDeps<T>;

  constructor(deps: WatchReaderDeps<T>) {
    this.#deps = deps;
  }

  /**
   * Reads to the end of the watch; never rejects.
   *
   * @param ordered false for a watch begun at no particular resourceVersion: it tells the state
   *   first, in no order, so that no resourceVersion counts until something has changed
   */
  async read(
    connection: WatchConnection<T>,
    ordered: boolean,
  ): Promise<WatchEnd & { readonly lastedMs: number; readonly events: number }> {
    const { sink, guard, progress, clock } = this.#deps;
    let events = 0;
    const soFar = () => ({ lastedMs: clock.monotonic() - connection.openedMs, events });
    try {
      for (;;) {
        const event = connection.ready() ?? (await connection.next()).value;
        if (!event) return { how: 'ended', ...soFar() };
        if (events++ === 0) this.#deps.onFirstEvent();
        let room: Promise<void> | undefined;
        switch (event.type) {
          case 'added':
          case 'modified':
          case 'deleted': {
            const { object } = event;
            if (!guard.admits(object)) break;
            if (event.type !== 'added') ordered = true;
            progress.lastEventMs = clock.monotonic();
            const key = keyOf(object);
            if (event.type === 'deleted') {
              room = sink.push({ type: 'deleted', key, lastKnown: object });
            } else if (ordered) {
              room = sink.push({ type: 'changed', key, object });
            } else {
              room = sink.push({ type: 'changed', key, object, unordered: true });
            }
            if (ordered) progress.resourceVersion = object.metadata.resourceVersion;
            break;
          }
          case 'bookmark':
            progress.lastBookmarkMs = clock.monotonic();
            connection.expectBookmarks();
            if (!isPointInTime(event.resourceVersion)) break;
            if (
              ordered &&
              isOlderResourceVersion(event.resourceVersion, progress.resourceVersion)
            ) {
              return { how: 'wentBack', ...soFar() };
            }
            ordered = true;
            room = sink.push({ type: 'synced', resourceVersion: event.resourceVersion });
            progress.resourceVersion = event.resourceVersion;
            break;
          case 'error':
            return { how: 'failed', error: event.error, ...soFar() };
        }
        if (room) await room;
      }
    } catch (error) {
      return { how: 'cut', error, ...soFar() };
    }
  }
}

export interface InitialState<T> {
  readonly objects: readonly T[];
  readonly resourceVersion: string;
}

export interface InitialStreamLimits {
  /** How long the stream may pause, in milliseconds. */
  readonly pauseMs: number;
  /** How long it may take, in milliseconds. */
  readonly timeoutMs: number;
}

/**
 * Reads the state that a watch begins with, up to the bookmark that marks its end; the connection
 * then goes on as an ordinary watch. Objects changed or deleted meanwhile are taken as they are at
 * the end, and only the bookmark's resourceVersion counts, since the state comes in no order.
 *
 * Undefined if the bookmark did not come: the stream ended, or a limit was reached. Proxies are
 * known to swallow it. Throws the error that the stream reports.
 */
export async function readInitialState<T extends KubernetesObject>(
  connection: WatchConnection<T>,
  guard: ObjectGuard,
  clock: Clock,
  { pauseMs, timeoutMs }: InitialStreamLimits,
): Promise<InitialState<T> | undefined> {
  const objects = new Map<ObjectKey, T>();
  let lastEventMs = clock.monotonic();
  const giveUp = () => connection.close();
  const pause = new Watchdog(clock, pauseMs, () => lastEventMs, giveUp);
  const cancelTimeout = clock.after(timeoutMs, giveUp);
  try {
    for (;;) {
      const event = connection.ready() ?? (await connection.next()).value;
      if (!event) return undefined;
      switch (event.type) {
        case 'added':
        case 'modified':
          lastEventMs = clock.monotonic();
          if (guard.admits(event.object)) objects.set(keyOf(event.object), event.object);
          break;
        case 'deleted':
          lastEventMs = clock.monotonic();
          if (guard.admits(event.object)) objects.delete(keyOf(event.object));
          break;
        case 'bookmark':
          if (!event.initialEventsEnd) break;
          return { objects: [...objects.values()], resourceVersion: event.resourceVersion };
        case 'error':
          throw event.error;
      }
    }
  } finally {
    pause.stop();
    cancelTimeout();
  }
}

/** Options of `WatchListSupport`. */
export interface WatchListSupportOptions {
  /**
   * False: always list page by page.
   * @default true
   */
  readonly enabled?: boolean;
  /**
   * How long a refusal is remembered, in milliseconds.
   * @default 300_000
   */
  readonly rememberMs?: number;
}

/**
 * Whether one server streams initial state through a watch (WatchList, KEP-3157). Shared by all
 * reflectors of that server: what one has found out by waiting need not be found out by each. A
 * refusal is forgotten after some minutes, since servers are upgraded and proxies replaced.
 */
export class WatchListSupport {
  readonly #clock: Clock;
  readonly #enabled: boolean;
  readonly #rememberMs: number;
  #refusedUntilMs = -Infinity;

  constructor(clock: Clock, options: WatchListSupportOptions = {}) {
    this.#clock = clock;
    this.#enabled = options.enabled ?? true;
    this.#rememberMs = options.rememberMs ?? 5 * 60_000;
  }

  /** True if streaming is worth a try. */
  get usable(): boolean {
    return this.#enabled && this.#clock.monotonic() >= this.#refusedUntilMs;
  }

  /** The server has refused to stream, or did not say where the initial state ends. */
  refused(): void {
    this.#refusedUntilMs = this.#clock.monotonic() + this.#rememberMs;
  }
}
