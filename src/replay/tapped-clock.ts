import { AsyncLocalStorage } from 'node:async_hooks';
import { sleepOn } from '../util/clock.ts';
import type { Clock } from '../util/clock.ts';

/** Returns the values that code in a sync gets. */
export interface ClockReads<S> {
  now(sync: S, ms: number): number;
  monotonic(sync: S, ms: number): number;
}

/** Returns a clock whose reads in a sync pass through `reads`. Timers keep the sync in which they were set. */
export function tappedClock<S>(
  clock: Clock,
  current: AsyncLocalStorage<S>,
  reads: ClockReads<S>,
): Clock {
  const tapped: Clock = {
    now: () => {
      const ms = clock.now();
      const sync = current.getStore();
      return sync === undefined ? ms : reads.now(sync, ms);
    },
    monotonic: () => {
      const ms = clock.monotonic();
      const sync = current.getStore();
      return sync === undefined ? ms : reads.monotonic(sync, ms);
    },
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
