import type { Deferred } from './deferred.ts';

/**
 * Resolves to true when `deferred` resolves, to false if `signal` aborts first; rejects with what
 * `deferred` rejects with. Leaves no listener on a signal that lives on.
 */
export async function settledBefore(deferred: Deferred, signal: AbortSignal): Promise<boolean> {
  const first = Promise.withResolvers<boolean>();
  const abort = () => first.resolve(false);
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  deferred.promise.then(() => first.resolve(true), first.reject);
  try {
    return await first.promise;
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
