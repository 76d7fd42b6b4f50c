import { ApiError } from '../api/api-error.ts';
import type { WatchStream } from '../client/client.ts';
import type { Clock } from '../util/clock.ts';
import type { ReflectorLimits } from './reflector-options.ts';

/** Options of `StallDetector`. */
export interface StallDetectorOptions extends Pick<ReflectorLimits, 'stallMs' | 'quietMs'> {
  readonly clock: Clock;
  /** Ends the connection. */
  readonly signal: AbortSignal;
}

type StreamActivity = Pick<WatchStream<never>, 'lastByteMs' | 'activity'>;

/**
 * Aborts its signal after inactivity, or when the owner's signal aborts. Three limits end a dead watch, with the default times:
 *
 *     last byte ──┬── 20 s ──▶ a ping without an answer for 10 s: the HTTP/2 connection is closed (`pingAfterMs`, `pingTimeoutMs`)
 *                 ├── 90 s ──▶ no byte and no answer to a ping: the watch is stalled (`stallMs`)
 *                 └── 300 s ─▶ answers to pings, but no byte: the watch is stalled (`quietMs`); 90 s once it sends bookmarks
 */
export class StallDetector {
  readonly openedMs: number;
  readonly #owner: AbortSignal;
  readonly #controller = new AbortController();
  readonly #watchdog: Watchdog;
  readonly #pingsCountMs: number;
  #stream: StreamActivity | undefined;
  #bookmarksDue = false;
  #stalled = false;

  constructor({ clock, stallMs, quietMs, signal }: StallDetectorOptions) {
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
