import { isApiError } from '../api/api-error.ts';
import { canICommand, missingRule, parseForbidden } from '../api/permission.ts';
import { Backoff } from '../util/backoff.ts';
import type { BackoffPolicy } from '../util/backoff.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { messageOf } from '../util/values.ts';
import type { LeaseChange, LeaseLock } from './lease-lock.ts';

/** Dependencies of `watchLease`. */
export interface WatchLeaseDeps {
  readonly clock: Clock;
  /** Numbers in [0, 1). */
  readonly random: () => number;
  readonly log: Logger;
}

/** Backoff between watches. Candidates and leaders also read the lease periodically. */
const REWATCH_BACKOFF: BackoffPolicy = { initialMs: 200, maxMs: 60_000, jitter: 0.5 };

/** A watch that lasted this long resets the backoff. */
const HEALTHY_WATCH_MS = 10_000;

/** Requested duration of a watch, in seconds. */
const WATCH_SECONDS = { min: 300, max: 600 };

/**
 * Watches the lease until `signal` aborts, and re-establishes the watch with backoff. Calls `onChange` with its
 * current state and every change. A state may be outdated when it arrives, changes between two watches are not
 * reported, and the watch may stall, so callers must not rely on it.
 */
export async function watchLease(
  lock: LeaseLock,
  onChange: (change: LeaseChange) => void,
  { clock, random, log }: WatchLeaseDeps,
  signal: AbortSignal,
): Promise<void> {
  const backoff = new Backoff(REWATCH_BACKOFF, random);
  const { min, max } = WATCH_SECONDS;
  let hasLoggedRefusal = false;
  while (!signal.aborted) {
    const startedMs = clock.monotonic();
    try {
      const timeoutSeconds = Math.floor(min + random() * (max - min));
      for await (const change of lock.watch({ timeoutSeconds, signal })) onChange(change);
    } catch (error) {
      if (signal.aborted) return;
      log.v(2).info('Could not watch the lease; polling it instead', {
        err: messageOf(error),
      });
      if (isApiError(error, 'forbidden') && !hasLoggedRefusal) {
        hasLoggedRefusal = true;
        logMissingPermission(error, log);
      }
    }
    if (clock.monotonic() - startedMs >= HEALTHY_WATCH_MS) backoff.reset();
    await clock.sleep(backoff.next(), signal);
  }
}

/** Without the permission, acquisition works but takes longer. */
function logMissingPermission(error: Error, log: Logger): void {
  const refusal = parseForbidden(error.message);
  log.info('Watching the lease is forbidden; polling it instead', {
    ...(refusal && {
      rule: missingRule(refusal),
      fix: `add the rule, and see: ${canICommand(refusal)}`,
    }),
  });
}
