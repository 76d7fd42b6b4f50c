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

/**
 * @param reason for people: why the key is requeued
 * @throws {RangeError} if `ms` is not a finite number; a negative one counts as 0
 */
export function requeueAfter(ms: number, reason?: string): Outcome {
  return { kind: 'requeueAfter', ms: delay('requeueAfter', ms), ...(reason && { reason }) };
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
}
