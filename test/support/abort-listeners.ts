/**
 * Detects listeners that are not removed from a signal that lives long, such as that of a program: fails where one
 * of too many is added.
 */
import { getEventListeners } from 'node:events';

/** Maximum number of listeners of a signal: of the requests that a program sends at once. */
const MAX_LISTENERS = 600;

/** Counting takes time in proportion to the listeners, so it is done once for as many. */
const CHECK_EVERY = 100;

const added = new WeakMap<AbortSignal, number>();

export function limitAbortListeners(): void {
  const original: unknown = Reflect.get(AbortSignal.prototype, 'addEventListener');
  if (typeof original !== 'function') throw new TypeError('AbortSignal has no addEventListener');
  AbortSignal.prototype.addEventListener = function add(
    this: AbortSignal,
    ...args: Parameters<EventTarget['addEventListener']>
  ): void {
    Reflect.apply(original, this, args);
    const count = (added.get(this) ?? 0) + 1;
    added.set(this, count);
    if (count % CHECK_EVERY !== 0) return;
    const present = getEventListeners(this, 'abort').length;
    if (present > MAX_LISTENERS) {
      throw new Error(`A signal has ${present} listeners: they are not removed`);
    }
  };
}
