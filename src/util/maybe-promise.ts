/** A value, or a promise of it if it is not known yet. */
export type MaybePromise<T> = T | Promise<T>;

/** Folds items in order. The result is a promise only if one of the steps returns one. */
export function foldInOrder<T, R>(
  items: Iterable<T>,
  initial: R,
  step: (result: R, item: T) => MaybePromise<R>,
): MaybePromise<R> {
  const iterator = items[Symbol.iterator]();
  const proceed = (from: R): MaybePromise<R> => {
    let result = from;
    for (let next = iterator.next(); !next.done; next = iterator.next()) {
      const stepped = step(result, next.value);
      if (stepped instanceof Promise) return stepped.then(proceed);
      result = stepped;
    }
    return result;
  };
  return proceed(initial);
}

/** Calls `use` with a value: at once, or when the promise of the value resolves. */
export function whenReady<T, R>(
  value: MaybePromise<T>,
  use: (value: T) => MaybePromise<R>,
): MaybePromise<R> {
  return value instanceof Promise ? value.then(use) : use(value);
}
