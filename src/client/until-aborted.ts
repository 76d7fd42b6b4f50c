/**
 * What `promise` gives, unless `signal` aborts first: then its reason, and the work goes on without
 * us, for whoever else waits for it. Nothing stays attached to a signal that outlives the promise.
 */
export function untilAborted<R>(promise: Promise<R>, signal: AbortSignal | undefined): Promise<R> {
  if (!signal) return promise;
  return new Promise<R>((resolve, reject) => {
    const abort = () => reject(signal.reason as Error);
    const detach = () => signal.removeEventListener('abort', abort);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    promise.then(resolve, reject).then(detach, detach);
  });
}
