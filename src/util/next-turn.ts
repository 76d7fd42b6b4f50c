/** Resolves in a later turn of the event loop, after the I/O that is ready. Browsers have only timers for that. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (typeof setImmediate === 'function') setImmediate(resolve);
    else setTimeout(resolve, 0);
  });
}
