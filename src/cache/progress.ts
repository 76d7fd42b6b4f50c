import type { Clock } from '../util/clock.ts';

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
  readonly lastByteMs: number | undefined;
  /** Last change of an object. */
  readonly lastEventMs: number | undefined;
  readonly lastBookmarkMs: number | undefined;
  /** Last complete list or initial stream. */
  readonly lastListMs: number | undefined;
  /** Cleared when a watch stands again. */
  readonly lastError: unknown;
  /** Where the next watch would begin. */
  readonly resourceVersion: string;
  /** Number of watches given up because nothing arrived. */
  readonly stalls: number;
  /** Milliseconds since the last sign of life, or since the start if there was none. */
  readonly silentMs: number;
}

/** The clock itself, moved by the reflector that owns it. */
export class ProgressClock implements Progress {
  readonly #clock: Clock;
  #phase: Phase = 'idle';
  #sinceMs: number;
  #reason: string | undefined;
  #lastByteMs: number | undefined;
  #stream: { readonly lastByteMs: number } | undefined;
  readonly #createdMs: number;
  missing = false;
  lastEventMs: number | undefined;
  lastBookmarkMs: number | undefined;
  lastListMs: number | undefined;
  lastError: unknown;
  resourceVersion = '';
  stalls = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
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
    const streamMs = this.#stream?.lastByteMs;
    if (streamMs === undefined) return this.#lastByteMs;
    return Math.max(streamMs, this.#lastByteMs ?? streamMs);
  }

  get silentMs(): number {
    return this.#clock.monotonic() - (this.lastByteMs ?? this.#createdMs);
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
  listenTo(stream: { readonly lastByteMs: number } | undefined): void {
    this.#lastByteMs = this.lastByteMs;
    this.#stream = stream;
  }

  listed(): void {
    this.lastListMs = this.#clock.monotonic();
    this.#lastByteMs = this.lastListMs;
    this.missing = false;
  }
}
