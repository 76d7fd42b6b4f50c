import { ApiError } from '../../api/api-error.ts';
import type { Clock } from '../../util/clock.ts';

/**
 * Calls with a signal that aborts with `signal`, or when `ms` have passed: an answer that does not
 * come is no answer. It is then up to the call to reject with the signal's reason, as calls of a
 * client do.
 */
export async function answerWithin<R>(
  clock: Clock,
  ms: number,
  signal: AbortSignal | undefined,
  call: (signal: AbortSignal) => Promise<R>,
): Promise<R> {
  const controller = new AbortController();
  const abort = () => controller.abort(signal?.reason);
  signal?.addEventListener('abort', abort, { once: true });
  if (signal?.aborted) abort();
  const cancel = clock.after(ms, () => {
    const message = `There was no answer within ${ms / 1000} s`;
    controller.abort(new ApiError({ kind: 'unreachable', message }));
  });
  try {
    return await call(controller.signal);
  } finally {
    cancel();
    signal?.removeEventListener('abort', abort);
  }
}
