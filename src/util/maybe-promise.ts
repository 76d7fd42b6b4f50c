/** A value, or a promise of it if it is not known yet. */
export type MaybePromise<T> = T | Promise<T>;

/** Calls `use` with a value: at once, or when the promise of the value resolves. */
export function whenReady<T, R>(
  value: MaybePromise<T>,
  use: (value: T) => MaybePromise<R>,
): MaybePromise<R> {
  return value instanceof Promise ? value.then(use) : use(value);
}
