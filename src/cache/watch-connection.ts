import { ApiError } from '../api/api-error.ts';
import type { KubernetesObject } from '../api/object.ts';
import type { WatchEvent } from '../api/watch-event.ts';
import type { WatchStream } from '../client/client.ts';
import type { Clock } from '../util/clock.ts';
import type { ListerWatcher, WatchRequest } from './lister-watcher.ts';
import { Watchdog } from './watchdog.ts';

export interface WatchConnectionOptions {
  readonly clock: Clock;
  /** How long no byte may arrive, in milliseconds. */
  readonly stallMs: number;
  /** Ends the connection. */
  readonly signal: AbortSignal;
}

/**
 * One open watch, read event by event. A connection on which no byte has arrived for `stallMs` is
 * given up, also while its answer is still awaited: a peer that vanished without a word looks
 * exactly like a quiet resource.
 */
export class WatchConnection<T extends KubernetesObject> {
  /** `Clock.monotonic()` when the watch was asked for. */
  readonly openedMs: number;
  readonly #stream: WatchStream<T>;
  readonly #iterator: AsyncIterator<WatchEvent<T>>;
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
      lifeline.cut();
      throw error;
    }
  }

  private constructor(stream: WatchStream<T>, lifeline: Lifeline) {
    this.openedMs = lifeline.openedMs;
    this.#stream = stream;
    this.#iterator = stream[Symbol.asyncIterator]();
    this.#lifeline = lifeline;
  }

  /** `Clock.monotonic()` when bytes last arrived. */
  get lastByteMs(): number {
    return this.#stream.lastByteMs;
  }

  /** True once the connection was given up because nothing arrived. */
  get stalled(): boolean {
    return this.#lifeline.stalled;
  }

  /** The next event; done when the server, the signal, a stall or `close` has ended the watch. */
  next(): Promise<IteratorResult<WatchEvent<T>, unknown>> {
    return this.#iterator.next();
  }

  close(): void {
    this.#lifeline.cut();
  }
}

/** What a connection hangs on: the owner's signal, its own abort, and the watchdog. */
class Lifeline {
  readonly openedMs: number;
  readonly #owner: AbortSignal;
  readonly #controller = new AbortController();
  readonly #watchdog: Watchdog;
  #stream: { readonly lastByteMs: number } | undefined;
  #stalled = false;

  constructor({ clock, stallMs, signal }: WatchConnectionOptions) {
    this.openedMs = clock.monotonic();
    this.#owner = signal;
    this.#watchdog = new Watchdog(
      clock,
      stallMs,
      () => Math.max(this.openedMs, this.#stream?.lastByteMs ?? 0),
      () => {
        this.#stalled = true;
        this.cut(
          new ApiError({
            kind: 'unreachable',
            message: `The watch was silent for ${stallMs / 1000} s`,
          }),
        );
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

  hold(stream: { readonly lastByteMs: number }): void {
    this.#stream = stream;
  }

  cut(reason?: unknown): void {
    this.#watchdog.stop();
    this.#owner.removeEventListener('abort', this.#follow);
    this.#controller.abort(reason);
  }

  readonly #follow = (): void => this.cut(this.#owner.reason);
}
