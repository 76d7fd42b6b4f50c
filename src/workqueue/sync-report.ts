import type { ReconcileResult } from '../metrics/reconcile-metrics.ts';
import { formatDuration } from '../util/duration.ts';
import type { LogFields, Logger } from '../util/logger.ts';
import { formatCause } from './queue-item.ts';
import type { Cause } from './queue-item.ts';
import type { TakenItem } from './work-queue.ts';

/** A run of a key, at its beginning. */
export interface SyncRun {
  /** Eight hexadecimal digits; on every log line of the run. */
  readonly reconcileID: string;
  /** Why the key runs, as far as its additions said: first ones first, merged and bounded. */
  readonly causes: readonly Cause[];
  /** How many additions had a cause that found no place in `causes`. */
  readonly omittedCauses: number;
  /** 1, and one more for each failure of the key since it last succeeded. */
  readonly attempt: number;
  /** From the first addition of the key until it was ready, in milliseconds: a backoff, or a plan. */
  readonly delayedMs: number;
  /** How long the key was ready before it was handed out, in milliseconds. */
  readonly queuedMs: number;
}

/** What became of a run. */
export interface SyncResult {
  readonly result: ReconcileResult;
  /** How long it took, in milliseconds. */
  readonly tookMs: number;
  /** In how many milliseconds the key runs again; absent if only something new makes it run. */
  readonly requeueAfterMs?: number | undefined;
  /** It was put off: what the key was to run for is still to be done. */
  readonly postponed?: boolean;
  /** Why it is put off, or runs again by plan, if that was said. */
  readonly reason?: string | undefined;
  /** What it was rejected with. */
  readonly error?: unknown;
}

/** One run of a key, from its causes to what became of it. */
export interface SyncReport<K> extends SyncRun, SyncResult {
  readonly key: K;
}

/**
 * The run that begins with `taken`.
 *
 * @param retries failures of the key since it last succeeded
 */
export function newSyncRun(
  { causes, omittedCauses, delayedMs, queuedMs }: TakenItem<unknown>,
  retries: number,
  random: () => number,
): SyncRun {
  const attempt = retries + 1;
  return { reconcileID: shortId(random), causes, omittedCauses, attempt, delayedMs, queuedMs };
}

/** Enough to find the lines of one run, not to tell all runs apart. */
function shortId(random: () => number): string {
  return Math.floor(random() * 2 ** 32)
    .toString(16)
    .padStart(8, '0');
}

/**
 * The line of a run: shown from `-v=4`, and from `-v=3` if the key runs again by itself.
 *
 * @param log names the key and the run
 * @param more what else the line is to say
 */
export function logSync(report: SyncReport<unknown>, log: Logger, more: LogFields = {}): void {
  const { result, tookMs, delayedMs, queuedMs, attempt, requeueAfterMs, reason } = report;
  const { causes, omittedCauses } = report;
  const line = log.v(requeueAfterMs === undefined ? 4 : 3);
  if (!line.enabled) return;
  line.info('Finished syncing', {
    result,
    duration: formatDuration(tookMs),
    ...(attempt > 1 && { attempt }),
    ...(delayedMs > 0 && { delayed: formatDuration(delayedMs) }),
    queued: formatDuration(queuedMs),
    causes: causes.map(formatCause),
    ...(omittedCauses > 0 && { omittedCauses }),
    ...(requeueAfterMs !== undefined && { requeueAfter: formatDuration(requeueAfterMs) }),
    ...(reason !== undefined && { reason }),
    ...more,
  });
}
