import { ApiError } from '../../api/api-error.ts';
import type { KubernetesObject, WatchEvent } from '../../api/object.ts';
import type { WatchStream } from '../../client/client.ts';
import type { Clock } from '../../util/clock.ts';
import type { ConnectionActivity } from '../../util/http.ts';
import type { ListerWatcher, WatchRequest } from './lister-watcher.ts';
import type { ReflectorLimits } from './reflector-options.ts';
import { Watchdog } from './watchdog.ts';

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
