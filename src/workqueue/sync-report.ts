import type { ReconcileResult } from '../metrics/reconcile-metrics.ts';
import { formatDuration } from '../util/duration.ts';
import type { LogFields, Logger } from '../util/logger.ts';
import { formatCause } from './queue-item.ts';
import type { Cause } from './queue-item.ts';
import type { TakenItem } from './work-queue.ts';

/** One sync of a key, at its start. */
export interface SyncRun {
  /** Eight hexadecimal digits, on every log line of the sync. */
  readonly reconcileID: string;
  /** Why the key was added, in order of addition; merged and bounded. */
  readonly causes: readonly Cause[];
  /** Number of additions whose cause is not in `causes`. */
  readonly omittedCauses: number;
  /** 1 plus the number of failures of the key since its last success. */
  readonly attempt: number;
  /** Time from the first addition until the key was ready, in milliseconds: a backoff or a requeue delay. */
  readonly delayedMs: number;
  /** Time from ready to the start of the sync, in milliseconds. */
  readonly queuedMs: number;
}

/** Result of a sync. */
export interface SyncResult {
  readonly result: ReconcileResult;
  /** Duration in milliseconds. */
  readonly tookMs: number;
  /** Delay until the next sync, in milliseconds; undefined if only a new addition causes one. */
  readonly requeueAfterMs?: number | undefined;
  /** Wall-clock time of the next sync, if the handler returned `requeueAt`. */
  readonly requeueAtMs?: number | undefined;
  /** The sync was postponed; its causes remain. */
  readonly postponed?: boolean;
  /** Reason of the postponement or requeue. */
  readonly reason?: string | undefined;
  /** Error of a failed sync. */
  readonly error?: unknown;
}

/** One sync of a key, with its result. */
export interface SyncReport<K> extends SyncRun, SyncResult {
  readonly key: K;
}

/**
 * Returns the sync of a taken item.
 *
 * @param retries number of failures of the key since its last success
 */
export function newSyncRun(
  { causes, omittedCauses, delayedMs, queuedMs }: TakenItem<unknown>,
  retries: number,
  random: () => number,
): SyncRun {
  const attempt = retries + 1;
  return { reconcileID: shortId(random), causes, omittedCauses, attempt, delayedMs, queuedMs };
}

/** `00` to `ff`. A number formatted with a radix costs several times as much as four look-ups. */
const HEXADECIMAL = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

/** Long enough to find the lines of one sync; not unique. */
function shortId(random: () => number): string {
  const id = Math.floor(random() * 2 ** 32);
  const byte = (shift: number) => HEXADECIMAL[(id >>> shift) & 0xff] ?? '';
  return byte(24) + byte(16) + byte(8) + byte(0);
}

/**
 * Logs a sync: at `-v=4`, or at `-v=3` if the key is requeued.
 *
 * @param log adds the key and the reconcileID
 * @param more additional fields
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
