import { ApiError } from '../api/api-error.ts';
import type { KubernetesObject, WatchEvent } from '../api/object.ts';
import type { WatchStream } from '../client/client.ts';
import type { Clock } from '../util/clock.ts';
import type { ConnectionActivity } from '../util/http.ts';
import type { ListerWatcher, WatchRequest } from './lister-watcher.ts';
import type { ReflectorLimits } from './reflector-options.ts';

/** Options of `WatchConnection`. */
export interface WatchConnectionOptions extends Pick<ReflectorLimits, 'stallMs' | 'quietMs'> {
  readonly clock: Clock;
  /** Ends the connection. */
  readonly signal: AbortSignal;
}

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
    options: WatchConnectionOptions,
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

type StreamActivity = Pick<WatchStream<never>, 'lastByteMs' | 'activity'>;

/** Aborts its signal after inactivity, or when the owner's signal aborts. */
class StallDetector {
  readonly openedMs: number;
  readonly #owner: AbortSignal;
  readonly #controller = new AbortController();
  readonly #watchdog: Watchdog;
  readonly #pingsCountMs: number;
  #stream: StreamActivity | undefined;
  #bookmarksDue = false;
  #stalled = false;

  constructor({ clock, stallMs, quietMs, signal }: WatchConnectionOptions) {
    this.openedMs = clock.monotonic();
    this.#owner = signal;
    this.#pingsCountMs = quietMs - stallMs;
    this.#watchdog = new Watchdog(
      clock,
      stallMs,
      () => this.#lastActivityMs,
      () => {
        this.#stalled = true;
        const message = 'The watch stalled: nothing arrived within the limit';
        this.abort(new ApiError({ kind: 'unreachable', message }));
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

  observe(stream: StreamActivity): void {
    this.#stream = stream;
  }

  expectBookmarks(): void {
    this.#bookmarksDue = true;
  }

  /** Answers to pings count as activity of the watch for a limited time after the last byte. */
  get #lastActivityMs(): number {
    const lastByteMs = Math.max(this.openedMs, this.#stream?.lastByteMs ?? 0);
    const lastPingMs = this.#bookmarksDue ? 0 : (this.#stream?.activity?.lastMs ?? 0);
    return Math.max(lastByteMs, Math.min(lastPingMs, lastByteMs + this.#pingsCountMs));
  }

  abort(reason: unknown): void {
    this.#watchdog.stop();
    this.#owner.removeEventListener('abort', this.#follow);
    this.#controller.abort(reason);
  }

  readonly #follow = (): void => this.abort(this.#owner.reason);
}

/**
 * Calls `onExpired` once if `lastActivityMs` does not change for `limitMs`. Activity only updates that
 * number; the timer re-arms itself.
 */
export class Watchdog {
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #lastActivityMs: () => number;
  readonly #onExpired: () => void;
  #cancel: () => void;

  /** @param lastActivityMs returns `Clock.monotonic()` of the last activity */
  constructor(clock: Clock, limitMs: number, lastActivityMs: () => number, onExpired: () => void) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#lastActivityMs = lastActivityMs;
    this.#onExpired = onExpired;
    this.#cancel = clock.after(limitMs, this.#check);
  }

  stop(): void {
    this.#cancel();
  }

  readonly #check = (): void => {
    const leftMs = this.#lastActivityMs() + this.#limitMs - this.#clock.monotonic();
    if (leftMs <= 0) this.#onExpired();
    else this.#cancel = this.#clock.after(leftMs, this.#check);
  };
}
