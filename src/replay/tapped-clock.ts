import { AsyncLocalStorage } from 'node:async_hooks';
import { sleepOn } from '../util/clock.ts';
import type { Clock } from '../util/clock.ts';

/** Returns a clock whose reads of the wall clock in a sync pass through `read`. Timers keep the sync in which they were set. */
export function tappedClock<S>(
  clock: Clock,
  current: AsyncLocalStorage<S>,
  read: (sync: S, ms: number) => number,
): Clock {
  const tapped: Clock = {
    now: () => {
      const ms = clock.now();
      const sync = current.getStore();
      return sync === undefined ? ms : read(sync, ms);
    },
    monotonic: () => clock.monotonic(),
    after: (ms, callback) =>
      clock.after(
        ms,
        current.getStore() === undefined ? callback : AsyncLocalStorage.bind(callback),
      ),
    sleep: (ms, signal) => sleepOn(tapped, ms, signal),
    ...(clock.active && { active: (activity) => clock.active?.(activity) }),
  };
  return tapped;
}
