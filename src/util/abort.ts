/** Resolves when `signal` aborts, or at once if it has. */
export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Resolves to true when `promise` resolves, or to false if `signal` aborts first. Rejects as `promise` does. */
export function settledBeforeAbort(
  promise: Promise<unknown>,
  signal: AbortSignal,
): Promise<boolean> {
  return race<boolean>(
    promise.then(() => true),
    signal,
    ({ resolve }) => resolve(false),
  );
}

/** Settles as `promise` does, or rejects with the reason of `signal` if it aborts first. */
export function rejectOnAbort<R>(promise: Promise<R>, signal: AbortSignal | undefined): Promise<R> {
  return signal ? race(promise, signal, ({ reject }) => reject(signal.reason)) : promise;
}

/** Leaves no listener on a signal that outlives the promise. */
function race<R>(
  promise: Promise<R>,
  signal: AbortSignal,
  onAbort: (result: PromiseWithResolvers<R>) => void,
): Promise<R> {
  const result = Promise.withResolvers<R>();
  const abort = () => onAbort(result);
  const detach = () => signal.removeEventListener('abort', abort);
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  promise.then(result.resolve, result.reject).then(detach, detach);
  return result.promise;
}
