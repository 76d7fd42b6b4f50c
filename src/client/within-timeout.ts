import type { Clock } from '../util/clock.ts';

/** Time was up before the work had ended. */
export class TimeoutError extends Error {
  override readonly name = 'TimeoutError';
}

/**
 * Runs `work` under a signal that aborts with the caller's, or after `timeoutMs` with a
 * `TimeoutError`. Rejects with the reason of whichever came first; leaves no timer and no listener.
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
 * The same for work that goes on when `work` has resolved: only its beginning is limited, and the
 * signal stays tied to the caller's.
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

export interface TimeLimit {
  readonly clock: Pick<Clock, 'after'>;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}
