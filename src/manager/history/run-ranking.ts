import type { ObjectKey } from '../../api/object-key.ts';
import type { Cause } from '../../workqueue/queue-item.ts';
import type { KeyHistory, RunEndRecord } from './run-history.ts';

/** A run that took long. */
export interface SlowRun {
  readonly controller: string;
  readonly key: ObjectKey;
  readonly tookMs: number;
  readonly result: RunEndRecord['result'];
  readonly startedAt: string;
  readonly causes: readonly Cause[];
}

/** A key that runs often. */
export interface HotKey {
  readonly controller: string;
  readonly key: ObjectKey;
  /** By the runs of it that are remembered. */
  readonly runsPerMinute: number;
  /** Of the last one. */
  readonly causes: readonly Cause[];
}

/** The keys whose slowest run, of those that are remembered, took longest. */
export function slowest(keys: readonly KeyHistory[], limit: number): SlowRun[] {
  return keys
    .flatMap(({ controller, key, last }): SlowRun[] => {
      const [worst] = last
        .flatMap((run) => (run.end ? [{ ...run, end: run.end }] : []))
        .toSorted((a, b) => b.end.tookMs - a.end.tookMs);
      if (!worst) return [];
      const { end, startedAt, causes } = worst;
      return [{ controller, key, tookMs: end.tookMs, result: end.result, startedAt, causes }];
    })
    .toSorted((a, b) => b.tookMs - a.tookMs)
    .slice(0, limit);
}

/**
 * The keys that run most often: intervals between the runs that are remembered, over the time from
 * the first of them until now. One that ran a few times in a row cools down by itself.
 *
 * @param nowMs by the wall clock
 */
export function hottest(keys: readonly KeyHistory[], limit: number, nowMs: number): HotKey[] {
  return keys
    .flatMap(({ controller, key, last }): HotKey[] => {
      const [first] = last;
      const latest = last.at(-1);
      if (!first || !latest || last.length < 2) return [];
      const sinceMs = Math.max(1, nowMs - Date.parse(first.startedAt));
      const runsPerMinute = ((last.length - 1) * 60_000) / sinceMs;
      return [{ controller, key, runsPerMinute, causes: latest.causes }];
    })
    .toSorted((a, b) => b.runsPerMinute - a.runsPerMinute)
    .slice(0, limit);
}
