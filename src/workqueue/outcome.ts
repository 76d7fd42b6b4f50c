import { withJitter } from '../util/backoff.ts';
import type { Clock } from '../util/clock.ts';

/** Result of a successful sync. A sync handler that fails throws and is retried. */
export type Outcome =
  /** Not requeued until the key is added again. */
  | { readonly kind: 'done' }
  /** Requeued after `ms` milliseconds, or earlier if the key is added. */
  | {
      readonly kind: 'requeueAfter';
      readonly ms: number;
      /** For people: `the schedule is due`. */
      readonly reason?: string | undefined;
      /** Maximum random addition as a fraction of `ms`. */
      readonly jitter?: number | undefined;
    }
  /** Requeued at the wall-clock time `atMs`, or earlier if the key is added. */
  | {
      readonly kind: 'requeueAt';
      readonly atMs: number;
      /** For people: `the schedule is due`. */
      readonly reason?: string | undefined;
    }
  /**
   * Could not start yet: requeued after `ms` milliseconds, or earlier if the key is added. Does not
   * count as a success: the backoff and the causes remain.
   */
  | {
      readonly kind: 'postponed';
      readonly ms: number;
      /** For people: `waiting for a cache to show own writes`. */
      readonly reason?: string | undefined;
    };

export type Postponed = Extract<Outcome, { readonly kind: 'postponed' }>;

const DONE: Outcome = Object.freeze({ kind: 'done' });

/** Ends a sync: the key is synced again when something changes. */
export function done(): Outcome {
  return DONE;
}

/** Options of {@link requeueAfter}. */
export interface RequeueOptions {
  /**
   * Maximum random addition as a fraction of the delay, so that keys that were synced together are not
   * requeued together: with 0.1, a delay of 60 s becomes 60 s to 66 s. As client-go's `wait.Jitter`.
   * @default 0
   */
  readonly jitter?: number | undefined;
}

/**
 * Ends a sync: the key is synced again after a delay, or earlier if something changes.
 *
 * @param ms delay in milliseconds
 * @param reason for people: why the key is requeued
 * @throws {RangeError} if `ms` is not a finite number, or the jitter is negative; a negative `ms` counts as 0
 *
 * @example
 * ```ts
 * import { requeueAfter } from 'crd-controller';
 *
 * // At the end of a sync: look again in a minute.
 * console.log(requeueAfter(60_000, 'certificate expires').kind); // prints: requeueAfter
 * ```
 */
export function requeueAfter(ms: number, reason?: string, options: RequeueOptions = {}): Outcome {
  const { jitter = 0 } = options;
  if (!(jitter >= 0 && Number.isFinite(jitter))) {
    throw new RangeError(`requeueAfter: jitter must not be negative: got ${jitter}`);
  }
  return {
    kind: 'requeueAfter',
    ms: delay('requeueAfter', ms),
    ...(reason && { reason }),
    ...(jitter > 0 && { jitter }),
  };
}

/**
 * Ends a sync: the key is synced again at a time of the wall clock, or earlier if something changes. Use it
 * for schedules: a `Controller` notices within a second that the clock was set or the machine was suspended.
 *
 * @param atMs milliseconds since the epoch, as `CronSchedule.next` returns; a past time counts as now, and undefined is
 * `done()`: there is no next time
 * @param reason for people: why the key is requeued
 * @throws {RangeError} if `atMs` is not a finite number
 */
export function requeueAt(atMs: number | undefined, reason?: string): Outcome {
  if (atMs === undefined) return DONE;
  if (!Number.isFinite(atMs)) {
    throw new RangeError(`requeueAt: atMs must be a finite number: got ${atMs}`);
  }
  return { kind: 'requeueAt', atMs, ...(reason && { reason }) };
}

/** Returns the delay of an outcome that requeues its key, in milliseconds. */
export function requeueDelayMs(
  outcome: Extract<Outcome, { readonly kind: 'requeueAfter' | 'requeueAt' }>,
  clock: Pick<Clock, 'now'>,
  random: () => number,
): number {
  if (outcome.kind === 'requeueAt') return Math.max(0, outcome.atMs - clock.now());
  return outcome.jitter ? withJitter(outcome.ms, outcome.jitter, random) : outcome.ms;
}

/**
 * @param reason for people: what the sync waits for
 * @throws {RangeError} if `ms` is not a finite number; a negative one counts as 0
 */
export function postpone(ms: number, reason?: string): Postponed {
  return { kind: 'postponed', ms: delay('postpone', ms), ...(reason && { reason }) };
}

function delay(caller: string, ms: number): number {
  if (!Number.isFinite(ms)) {
    throw new RangeError(`${caller}: ms must be a finite number: got ${ms}`);
  }
  return Math.max(0, ms);
}

/**
 * Thrown by a sync handler if a retry cannot help, because the object itself is invalid by rules that do
 * not change while the program runs. The key is not retried until it is added again. Do not use it for an
 * object that the server rejects: admission policies change.
 */
export class TerminalError extends Error {
  override readonly name = 'TerminalError';
  /** Reason of the condition Ready: see `objectController`. CamelCase and stable. */
  readonly reason: string;

  /** @param options a `cause`, and `reason`, which is `SyncFailed` by default */
  constructor(message: string, { reason = 'SyncFailed', ...options }: TerminalErrorOptions = {}) {
    super(message, options);
    this.reason = reason;
  }
}

interface TerminalErrorOptions extends ErrorOptions {
  readonly reason?: string | undefined;
}

interface SyncErrorOptions extends TerminalErrorOptions {
  readonly retryAfterMs?: number | undefined;
}

/** Thrown by a sync handler to be retried with backoff, with the reason of the condition Ready: see `objectController`. */
export class SyncError extends Error {
  override readonly name: string = 'SyncError';
  /** CamelCase and stable: `NotRegistered`. */
  readonly reason: string;
  /** Minimum delay of the retry, in milliseconds: a longer backoff stays. */
  readonly retryAfterMs: number | undefined;

  /** @param options a `cause`, `reason`, which is `SyncFailed` by default, and `retryAfterMs`, which is 0 by default */
  constructor(
    message: string,
    { reason = 'SyncFailed', retryAfterMs, ...options }: SyncErrorOptions = {},
  ) {
    super(message, options);
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
  }
}
