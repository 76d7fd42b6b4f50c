import type { Clock } from './clock.ts';

/** The work did not end within its timeout. */
export class TimeoutError extends Error {
  override readonly name = 'TimeoutError';
}

/**
 * Runs `work` with a signal that aborts with the caller's signal, or with a `TimeoutError` after `timeoutMs`.
 * Removes its timer and listener when the work ends.
 *
 * @example
 * ```ts
 * import { systemClock, withinTimeout } from 'crd-controller';
 *
 * const limit = { clock: systemClock, timeoutMs: 10 };
 * const failure = await withinTimeout(limit, async (signal) => {
 *   await systemClock.sleep(60_000, signal);
 *   signal.throwIfAborted();
 * }).catch((error: Error) => error.name);
 * console.log(failure); // prints: TimeoutError
 * ```
 */
export async function withinTimeout<R>(
  { clock, timeoutMs, signal }: TimeLimit,
  work: (signal: AbortSignal) => Promise<R>,
): Promise<R> {
  const limit = new AbortController();
  const abort = () => limit.abort(signal?.reason);
  const cancel = clock.after(timeoutMs, () => limit.abort(timeUp(timeoutMs)));
  signal?.addEventListener('abort', abort, { once: true });
  if (signal?.aborted) abort();
  try {
    return await work(limit.signal);
  } finally {
    cancel();
    signal?.removeEventListener('abort', abort);
  }
}

/**
 * Limits only the start of an operation that continues after `work` has resolved, such as a watch. The signal
 * stays connected to the caller's signal.
 */
export async function startWithinTimeout<R>(
  { clock, timeoutMs, signal }: TimeLimit,
  work: (signal: AbortSignal) => Promise<R>,
): Promise<R> {
  const limit = new AbortController();
  const cancel = clock.after(timeoutMs, () => limit.abort(timeUp(timeoutMs)));
  try {
    return await work(AbortSignal.any(signal ? [signal, limit.signal] : [limit.signal]));
  } finally {
    cancel();
  }
}

function timeUp(timeoutMs: number): TimeoutError {
  return new TimeoutError(`not done within ${timeoutMs / 1000} s`);
}

/** Limit of an operation. */
export interface TimeLimit {
  readonly clock: Pick<Clock, 'after'>;
  /** In milliseconds. */
  readonly timeoutMs: number;
  /** The signal of the caller. */
  readonly signal?: AbortSignal | undefined;
}
