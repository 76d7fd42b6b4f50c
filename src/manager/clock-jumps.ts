import type { ObjectKey } from '../api/object-key.ts';
import { settledBeforeAbort } from '../util/abort.ts';
import { watchClockJumps } from '../util/clock.ts';
import type { Clock } from '../util/clock.ts';
import { Deferred } from '../util/deferred.ts';
import type { Logger } from '../util/logger.ts';
import type { SyncReport } from '../workqueue/sync-report.ts';
import type { ControllerObserver, Source } from './controller-options.ts';

/**
 * Keys that wait for a time of the wall clock. Timers do not notice that the clock was set, or that the
 * machine was suspended, so these keys are enqueued after a jump, and their syncs look at the clock again.
 */
export class WallClockKeys implements ControllerObserver {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #waiting = new Set<ObjectKey>();
  readonly #first = new Deferred();

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock;
    this.#log = log;
  }

  ended({ key, requeueAtMs }: SyncReport<ObjectKey>): void {
    if (requeueAtMs !== undefined) {
      this.#waiting.add(key);
      this.#first.resolve();
    } else if (this.#waiting.size > 0) this.#waiting.delete(key);
  }

  /** Enqueues the keys after each jump of the clock. Checks the clock once a second, from the first key on. */
  readonly source: Source = async (queue, signal) => {
    if (!(await settledBeforeAbort(this.#first.promise, signal))) return;
    const enqueue = (byMs: number) => {
      this.#log.info('The clock jumped; syncing the objects that wait for a time', {
        byMs: Math.round(byMs),
        count: this.#waiting.size,
      });
      for (const key of this.#waiting) queue.add(key, { cause: 'Clock jumped' });
    };
    await watchClockJumps(this.#clock, enqueue, signal);
  };
}
