import type { KubernetesObject, WatchEvent } from '../api/object.ts';
import { keyOf } from '../api/object-key.ts';
import type { ObjectKey } from '../api/object-key.ts';
import { isOlderResourceVersion, isPointInTime } from '../api/resource-version.ts';
import type { WatchStream } from '../client/client.ts';
import type { Clock } from '../util/clock.ts';
import type { ConnectionActivity } from '../util/http.ts';
import type { DeltaSink } from './delta-queue.ts';
import type { ListerWatcher, WatchRequest } from './lister-watcher.ts';
import type { ObjectGuard } from './object-guard.ts';
import type { ReflectorProgress } from './progress.ts';
import { StallDetector, Watchdog } from './stall-detector.ts';
import type { StallDetectorOptions } from './stall-detector.ts';

/**
 * One open watch with stall detection. A connection whose peer has vanished looks exactly like a
 * resource without changes. Therefore a watch ends if no byte arrives for `stallMs`, also before its
 * response. If the connection answers pings, that limit is `quietMs` until the watch sends a bookmark,
 * since more bookmarks are due then.
 */
export class WatchConnection<T extends KubernetesObject> {
  /** `Clock.monotonic()` of the request. */
  readonly openedMs: number;
  readonly #stream: WatchStream<T>;
  readonly #batches: AsyncIterator<readonly WatchEvent<T>[]>;
  /** The last received events, and the number of those that were read. */
  #batch: readonly WatchEvent<T>[] = [];
  #read = 0;
  readonly #stallDetector: StallDetector;

  /** Rejects as `source.watch` does, or with `unreachable` if no response arrives for `stallMs`. */
  static async open<T extends KubernetesObject>(
    source: ListerWatcher<T>,
    request: WatchRequest,
    options: StallDetectorOptions,
  ): Promise<WatchConnection<T>> {
    const stallDetector = new StallDetector(options);
    try {
      const stream = await source.watch({ ...request, signal: stallDetector.signal });
      stallDetector.observe(stream);
      return new WatchConnection(stream, stallDetector);
    } catch (error) {
      stallDetector.abort(CLOSED);
      throw error;
    }
  }

  private constructor(stream: WatchStream<T>, stallDetector: StallDetector) {
    this.openedMs = stallDetector.openedMs;
    this.#stream = stream;
    this.#batches = (stream.batches?.() ?? oneByOne(stream))[Symbol.asyncIterator]();
    this.#stallDetector = stallDetector;
  }

  /** `Clock.monotonic()` of the last received byte. */
  get lastByteMs(): number {
    return this.#stream.lastByteMs;
  }

  /** Activity of the connection that carries the watch. */
  get activity(): ConnectionActivity | undefined {
    return this.#stream.activity;
  }

  /** Whether the watch was ended because nothing arrived. */
  get stalled(): boolean {
    return this.#stallDetector.stalled;
  }

  /** Returns the next event; `done` after the server, the signal, a stall or `close` ended the watch. */
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

  /** Returns the next event if it has already arrived. Saves a promise per event. */
  ready(): WatchEvent<T> | undefined {
    if (this.#read === this.#batch.length || this.#stallDetector.signal.aborted) return undefined;
    return this.#batch[this.#read++];
  }

  /** Applies `stallMs` from now on: the server sends bookmarks about once a minute. */
  expectBookmarks(): void {
    this.#stallDetector.expectBookmarks();
  }

  close(): void {
    this.#stallDetector.abort(CLOSED);
  }
}

/** Shared, because an abort without a reason creates an error with a stack for each watch. */
const CLOSED = new DOMException('The watch was closed', 'AbortError');

async function* oneByOne<E>(events: AsyncIterable<E>): AsyncGenerator<readonly E[], void> {
  for await (const event of events) yield [event];
}

/** How a watch ended. */
export type WatchEnd =
  /** The server did not accept the watch. */
  | { readonly how: 'watchRejected'; readonly error: unknown }
  /** Not started: the server has not reached the resourceVersion. */
  | { readonly how: 'serverBehind' }
  /** Not started: the server was absent for longer than a restore takes. */
  | { readonly how: 'serverWasAbsent' }
  /** The server closed it, as it does after `timeoutSeconds`. */
  | { readonly how: 'serverEnded'; readonly lastedMs: number; readonly events: number }
  /** The connection broke, or the server sent something that is not a watch event. */
  | { readonly how: 'connectionBroke'; readonly lastedMs: number; readonly error: unknown }
  /** The server sent an error event. */
  | { readonly how: 'errorEvent'; readonly error: unknown }
  /** A bookmark had an older resourceVersion than an earlier event. */
  | { readonly how: 'bookmarkWentBack' }
  /** No byte arrived within the stall timeout. */
  | { readonly how: 'stalled' };

/** A watch that was read to its end. */
export type ReadWatch = WatchEnd & {
  readonly lastedMs: number;
  readonly events: number;
  /** Of the last change or bookmark; the start of the watch if there was none. */
  readonly resourceVersion: string;
};

/** Dependencies of `WatchReader`. */
export interface WatchReaderDeps<T extends KubernetesObject> {
  readonly sink: DeltaSink<T>;
  readonly guard: ObjectGuard;
  readonly progress: ReflectorProgress;
  readonly clock: Clock;
  readonly onFirstEvent: () => void;
}

/**
 * Pushes the events of a watch into the sink. This is the hot path of every change, so an event costs
 * one delta and nothing else. The resourceVersion advances after the push, never before.
 */
export class WatchReader<T extends KubernetesObject> {
  readonly #deps: WatchReaderDeps<T>;

  constructor(deps: WatchReaderDeps<T>) {
    this.#deps = deps;
  }

  /**
   * Reads to the end of the watch; never rejects.
   *
   * A watch without a start resourceVersion sends the current state first, in no order, so resourceVersions
   * count only from the first change.
   *
   * @param resourceVersion the start of the watch
   */
  async read(connection: WatchConnection<T>, resourceVersion: string): Promise<ReadWatch> {
    const { sink, guard, progress, clock } = this.#deps;
    let ordered = isPointInTime(resourceVersion);
    let events = 0;
    const advance = (to: string): void => {
      resourceVersion = to;
      progress.resourceVersion = to;
    };
    const soFar = () => {
      const lastedMs = clock.monotonic() - connection.openedMs;
      return { lastedMs, events, resourceVersion };
    };
    try {
      for (;;) {
        const event = connection.ready() ?? (await connection.next()).value;
        if (!event) return { how: 'serverEnded', ...soFar() };
        if (events++ === 0) this.#deps.onFirstEvent();
        let backpressure: Promise<void> | undefined;
        switch (event.type) {
          case 'added':
          case 'modified':
          case 'deleted': {
            const { object } = event;
            if (!guard.admits(object)) break;
            if (event.type !== 'added') ordered = true;
            progress.lastEventMs = connection.lastByteMs;
            const key = keyOf(object);
            if (event.type === 'deleted') {
              backpressure = sink.push({ type: 'deleted', key, lastKnown: object });
            } else if (ordered) {
              backpressure = sink.push({ type: 'changed', key, object });
            } else {
              backpressure = sink.push({ type: 'changed', key, object, unordered: true });
            }
            if (ordered) advance(object.metadata.resourceVersion);
            break;
          }
          case 'bookmark':
            progress.lastBookmarkMs = clock.monotonic();
            connection.expectBookmarks();
            if (!isPointInTime(event.resourceVersion)) break;
            if (ordered && isOlderResourceVersion(event.resourceVersion, resourceVersion)) {
              return { how: 'bookmarkWentBack', ...soFar() };
            }
            ordered = true;
            backpressure = sink.push({ type: 'synced', resourceVersion: event.resourceVersion });
            advance(event.resourceVersion);
            break;
          case 'error':
            return { how: 'errorEvent', error: event.error, ...soFar() };
        }
        if (backpressure) await backpressure;
      }
    } catch (error) {
      return { how: 'connectionBroke', error, ...soFar() };
    }
  }
}

export interface InitialState<T> {
  readonly objects: readonly T[];
  readonly resourceVersion: string;
}

export interface InitialStreamLimits {
  /** Longest pause between two events, in milliseconds. */
  readonly pauseMs: number;
  /** Timeout of the whole stream, in milliseconds. */
  readonly timeoutMs: number;
}

/**
 * Reads the initial state from a watch, up to the bookmark that marks its end. The connection then
 * continues as an ordinary watch. The state contains objects as of that bookmark, also those that
 * changed during the stream. Only the bookmark's resourceVersion counts, as the objects have no order.
 *
 * Returns undefined if the stream ended or a limit was reached before the bookmark: some proxies drop
 * it. Throws the error of an error event.
 */
export async function readInitialState<T extends KubernetesObject>(
  connection: WatchConnection<T>,
  guard: ObjectGuard,
  clock: Clock,
  { pauseMs, timeoutMs }: InitialStreamLimits,
): Promise<InitialState<T> | undefined> {
  const objects = new InitialObjects<T>();
  let lastEventMs = clock.monotonic();
  const close = () => connection.close();
  const pause = new Watchdog(clock, pauseMs, () => lastEventMs, close);
  const cancelTimeout = clock.after(timeoutMs, close);
  try {
    for (;;) {
      const event = connection.ready() ?? (await connection.next()).value;
      if (!event) return undefined;
      switch (event.type) {
        case 'added':
        case 'modified':
        case 'deleted':
          lastEventMs = clock.monotonic();
          if (guard.admits(event.object)) objects.apply(event.type, event.object);
          break;
        case 'bookmark':
          if (!event.initialEventsEnd) break;
          return { objects: objects.all(), resourceVersion: event.resourceVersion };
        case 'error':
          throw event.error;
      }
    }
  } finally {
    pause.stop();
    cancelTimeout();
  }
}

/**
 * The objects of an initial stream. Nearly all are additions, which need no lookup; a map is built at the first
 * event of another type.
 */
class InitialObjects<T extends KubernetesObject> {
  readonly #added: T[] = [];
  #byKey: Map<ObjectKey, T> | undefined;

  apply(type: 'added' | 'modified' | 'deleted', object: T): void {
    if (type === 'added' && !this.#byKey) {
      this.#added.push(object);
      return;
    }
    this.#byKey ??= new Map(this.#added.map((added) => [keyOf(added), added]));
    if (type === 'deleted') this.#byKey.delete(keyOf(object));
    else this.#byKey.set(keyOf(object), object);
  }

  all(): readonly T[] {
    return this.#byKey ? [...this.#byKey.values()] : this.#added;
  }
}

/** Options of `WatchListSupport`. */
export interface WatchListSupportOptions {
  /**
   * False uses paged lists only.
   * @default true
   */
  readonly enabled?: boolean | undefined;
  /**
   * Time without a new attempt after the server rejected one, in milliseconds.
   * @default 300_000
   */
  readonly rememberMs?: number | undefined;
}

/**
 * Whether a server streams the initial state through a watch (WatchList, KEP-3157). Shared by all
 * reflectors of one server, so that only one of them waits for a stream that does not end. A rejection
 * expires, since servers are upgraded and proxies replaced.
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

  /** Whether to try to stream the initial state. */
  get usable(): boolean {
    return this.#enabled && this.#clock.monotonic() >= this.#refusedUntilMs;
  }

  /** Records that the server rejected the stream, or sent no end of the initial state. */
  refused(): void {
    this.#refusedUntilMs = this.#clock.monotonic() + this.#rememberMs;
  }
}
