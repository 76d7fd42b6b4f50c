/**
 * What a handler plans for a key it has dealt with. Returning one means that all went well; a
 * handler that did not succeed throws, and is called again later.
 */
export type Outcome =
  /** Nothing more until something changes. */
  | { readonly kind: 'done' }
  /** Once more after `ms` milliseconds, or earlier if something changes. */
  | {
      readonly kind: 'requeueAfter';
      readonly ms: number;
      /** What is planned, for people: `the schedule is due`. */
      readonly reason?: string | undefined;
    }
  /**
   * It could not be dealt with yet: once more after `ms` milliseconds, or earlier if something
   * changes. That is no success; failures before it still count, and what the key was to run for is
   * still to be done.
   */
  | {
      readonly kind: 'postponed';
      readonly ms: number;
      /** What is waited for, for people: `the cache lags behind own writes`. */
      readonly reason?: string | undefined;
    };

export type Postponed = Extract<Outcome, { readonly kind: 'postponed' }>;

const DONE: Outcome = Object.freeze({ kind: 'done' });

/** Ends a sync: the key is synced again when something changes. */
export function done(): Outcome {
  return DONE;
}

/**
 * @param reason what is planned, for people
 * @throws {RangeError} if `ms` is not a finite number; below 0 it means 0
 */
export function requeueAfter(ms: number, reason?: string): Outcome {
  return { kind: 'requeueAfter', ms: delay('requeueAfter', ms), ...(reason && { reason }) };
}

/**
 * @param reason what is waited for, for people
 * @throws {RangeError} if `ms` is not a finite number; below 0 it means 0
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
 * Thrown by a handler when another try could not help: the object itself is at fault by rules that do
 * not change while the program runs. The key is not tried again until it is added again. An object
 * that the server rejects is no such case: admission policies come and go.
 */
export class TerminalError extends Error {
  override readonly name = 'TerminalError';
}
