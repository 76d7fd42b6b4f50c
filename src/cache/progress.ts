import type { WatchStream } from '../client/client.ts';
import type { Clock } from '../util/clock.ts';
import { limitsOf } from './reflector-options.ts';

/** What a reflector is about. */
export type Phase = 'idle' | 'streaming' | 'listing' | 'watching' | 'waiting';

/**
 * Signs of life of one reflector, for readiness, metrics and people. Times are those of
 * `Clock.monotonic()`, undefined for what has not happened yet. They move with what arrived from
 * the server, not with what the reflector did: a deaf reflector is busy too.
 */
export interface Progress {
  readonly phase: Phase;
  /** Since when it is in this phase. */
  readonly sinceMs: number;
  /** Why it waits. */
  readonly reason: string | undefined;
  /** The server does not serve the resource: its CustomResourceDefinition is not installed. */
  readonly missing: boolean;
  /** Last byte of a watch, or whole answer to a list. */
  readonly lastByteMs: number | undefined;
  /** Last sign of life of the connection under a watch, be it only the answer to a ping. */
  readonly lastPulseMs: number | undefined;
  /** Last change of an object. */
  readonly lastEventMs: number | undefined;
  readonly lastBookmarkMs: number | undefined;
  /** Last complete list or initial stream. */
  readonly lastListMs: number | undefined;
  /** Why the last call failed. Cleared when a watch stands again. */
  readonly lastError: unknown;
  /** When it failed. */
  readonly lastErrorMs: number | undefined;
  /** When the log last told of it at length. */
  readonly lastErrorLoggedMs: number | undefined;
  /** Where the next watch would begin. */
  readonly resourceVersion: string;
  /** Number of watches given up because nothing arrived. */
  readonly stalls: number;
  /** Milliseconds since the last sign of life, or since the start if there was none. */
  readonly inactiveMs: number;
  /** The silence has lasted for so long that the mirror may be out of date without knowing it. */
  readonly isStale: boolean;
}

type SignsOfLife = Pick<WatchStream<never>, 'lastByteMs' | 'activity'>;

/** The clock itself, moved by the reflector that owns it. */
export class ProgressClock implements Progress {
  readonly #clock: Clock;
  readonly #maxInactiveMs: number;
  #phase: Phase = 'idle';
  #sinceMs: number;
  #reason: string | undefined;
  #lastByteMs: number | undefined;
  #lastPulseMs: number | undefined;
  #stream: SignsOfLife | undefined;
  readonly #createdMs: number;
  missing = false;
  lastEventMs: number | undefined;
  lastBookmarkMs: number | undefined;
  lastListMs: number | undefined;
  #lastError: unknown;
  #lastErrorMs: number | undefined;
  #lastErrorLoggedMs: number | undefined;
  resourceVersion = '';
  stalls = 0;

  /** @param maxInactiveMs after how much silence the mirror counts as deaf */
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

  get lastPulseMs(): number | undefined {
    return latest(this.#lastPulseMs, this.#stream?.activity?.lastMs);
  }

  get lastError(): unknown {
    return this.#lastError;
  }

  get lastErrorMs(): number | undefined {
    return this.#lastErrorMs;
  }

  get lastErrorLoggedMs(): number | undefined {
    return this.#lastErrorLoggedMs;
  }

  get inactiveMs(): number {
    const lastLifeMs = latest(this.lastByteMs, this.lastPulseMs) ?? this.#createdMs;
    return this.#clock.monotonic() - lastLifeMs;
  }

  get isStale(): boolean {
    return this.inactiveMs > this.#maxInactiveMs;
  }

  /** @returns true if the phase is another one than before */
  enter(phase: Phase, reason?: string): boolean {
    this.#reason = reason;
    if (phase === this.#phase) return false;
    this.#phase = phase;
    this.#sinceMs = this.#clock.monotonic();
    return true;
  }

  /** Bytes arrive on `stream` from now on; undefined: on none. */
  listenTo(stream: SignsOfLife | undefined): void {
    this.#lastByteMs = this.lastByteMs;
    this.#lastPulseMs = this.lastPulseMs;
    this.#stream = stream;
  }

  listed(): void {
    this.lastListMs = this.#clock.monotonic();
    this.#lastByteMs = this.lastListMs;
    this.missing = false;
  }

  /** @param told the log has told of it at length */
  failed(error: unknown, told = false): void {
    this.#lastError = error;
    this.#lastErrorMs = this.#clock.monotonic();
    if (told) this.#lastErrorLoggedMs = this.#lastErrorMs;
    this.missing = false;
  }

  recovered(): void {
    this.#lastError = undefined;
    this.#lastErrorMs = undefined;
    this.#lastErrorLoggedMs = undefined;
  }
}

function latest(one: number | undefined, other: number | undefined): number | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return Math.max(one, other);
}
