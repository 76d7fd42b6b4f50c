import { ApiError } from '../api/api-error.ts';
import type { WatchStream } from '../client/client.ts';
import type { Clock } from '../util/clock.ts';
import { limitsOf } from './reflector-options.ts';

/** Current activity of a reflector. */
export type Phase = 'idle' | 'streaming' | 'listing' | 'watching' | 'waiting';

/**
 * Progress of one reflector, for readiness, metrics and debug pages. Times are those of
 * `Clock.monotonic()`, undefined if it has not happened yet. They change with data from the server,
 * never with the reflector's own activity.
 */
export interface Progress {
  readonly phase: Phase;
  /** Start of the phase. */
  readonly sinceMs: number;
  /** Why the last attempt failed or ended, until one succeeds. */
  readonly reason: string | undefined;
  /** The server does not serve the resource: its CustomResourceDefinition is not installed. */
  readonly missing: boolean;
  /** Last byte of a watch, or last complete list. */
  readonly lastByteMs: number | undefined;
  /** Last activity of the connection that carries the watch, including answers to pings. */
  readonly lastActivityMs: number | undefined;
  /** Last change of an object. */
  readonly lastEventMs: number | undefined;
  readonly lastBookmarkMs: number | undefined;
  /** Last complete list or initial stream. */
  readonly lastListMs: number | undefined;
  /** Error of the last failed request, until a watch is established. */
  readonly lastError: unknown;
  /** Time of that failure. */
  readonly lastErrorMs: number | undefined;
  /** Time of the first of the failures of this kind that no success has interrupted. */
  readonly failingSinceMs: number | undefined;
  /** Time of its last log line above `-v=4`. */
  readonly lastErrorLoggedMs: number | undefined;
  /** Start of the next watch. */
  readonly resourceVersion: string;
  /** Number of stalled watches. */
  readonly stalls: number;
  /** Milliseconds since the last activity of the server, or since the start. */
  readonly inactiveMs: number;
  /** The server has been inactive for so long that the cache may be out of date. */
  readonly isStale: boolean;
}

type StreamActivity = Pick<WatchStream<never>, 'lastByteMs' | 'activity'>;

/** Progress that its reflector updates. */
export class ReflectorProgress implements Progress {
  readonly #clock: Clock;
  readonly #maxInactiveMs: number;
  #phase: Phase = 'idle';
  #sinceMs: number;
  #reason: string | undefined;
  #lastByteMs: number | undefined;
  #lastActivityMs: number | undefined;
  #stream: StreamActivity | undefined;
  readonly #createdMs: number;
  missing = false;
  lastEventMs: number | undefined;
  lastBookmarkMs: number | undefined;
  lastListMs: number | undefined;
  #lastError: unknown;
  #lastErrorMs: number | undefined;
  #failingSinceMs: number | undefined;
  #lastErrorLoggedMs: number | undefined;
  resourceVersion = '';
  stalls = 0;

  /** @param maxInactiveMs inactivity of the server after which the cache counts as stale */
  constructor(clock: Clock, maxInactiveMs: number = limitsOf().maxInactiveMs) {
    this.#clock = clock;
    this.#maxInactiveMs = maxInactiveMs;
    this.#createdMs = clock.monotonic();
    this.#sinceMs = this.#createdMs;
  }

  get phase(): Phase {
    return this.#phase;
  }

  get sinceMs(): number {
    return this.#sinceMs;
  }

  get reason(): string | undefined {
    return this.#reason;
  }

  get lastByteMs(): number | undefined {
    return latest(this.#lastByteMs, this.#stream?.lastByteMs);
  }

  get lastActivityMs(): number | undefined {
    return latest(this.#lastActivityMs, this.#stream?.activity?.lastMs);
  }

  get lastError(): unknown {
    return this.#lastError;
  }

  get lastErrorMs(): number | undefined {
    return this.#lastErrorMs;
  }

  get failingSinceMs(): number | undefined {
    return this.#failingSinceMs;
  }

  get lastErrorLoggedMs(): number | undefined {
    return this.#lastErrorLoggedMs;
  }

  get inactiveMs(): number {
    const lastMs = latest(this.lastByteMs, this.lastActivityMs) ?? this.#createdMs;
    return this.#clock.monotonic() - lastMs;
  }

  get isStale(): boolean {
    return this.inactiveMs > this.#maxInactiveMs;
  }

  /** @returns false if the phase is the same as before */
  enter(phase: Phase, reason?: string): boolean {
    // A new attempt does not clear the reason; only a success does.
    if (reason !== undefined) this.#reason = reason;
    if (phase === this.#phase) return false;
    this.#phase = phase;
    this.#sinceMs = this.#clock.monotonic();
    return true;
  }

  /** Reads activity from `stream` from now on; undefined if there is no watch. */
  observe(stream: StreamActivity | undefined): void {
    this.#lastByteMs = this.lastByteMs;
    this.#lastActivityMs = this.lastActivityMs;
    this.#stream = stream;
  }

  listed(): void {
    this.lastListMs = this.#clock.monotonic();
    this.#lastByteMs = this.lastListMs;
    this.#reason = undefined;
    this.missing = false;
  }

  /** @param isLogged a line above `-v=4` was logged */
  failed(error: unknown, isLogged = false): void {
    if (kindOf(error) !== kindOf(this.#lastError)) this.#failingSinceMs = undefined;
    this.#lastError = error;
    this.#lastErrorMs = this.#clock.monotonic();
    this.#failingSinceMs ??= this.#lastErrorMs;
    if (isLogged) this.#lastErrorLoggedMs = this.#lastErrorMs;
    this.missing = false;
  }

  recovered(): void {
    this.#reason = undefined;
    this.#lastError = undefined;
    this.#lastErrorMs = undefined;
    this.#failingSinceMs = undefined;
    this.#lastErrorLoggedMs = undefined;
  }
}

function kindOf(error: unknown): string {
  return error instanceof ApiError ? error.kind : typeof error;
}

function latest(one: number | undefined, other: number | undefined): number | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return Math.max(one, other);
}
