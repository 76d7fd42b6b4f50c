import { isApiError } from '../api/api-error.ts';
import type { Lease } from '../api/builtin.ts';
import { canI, missingRule, parseRefusal } from '../api/refusal.ts';
import { Backoff } from '../util/backoff.ts';
import type { BackoffPolicy } from '../util/backoff.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { messageOf } from '../util/message-of.ts';
import type { LeaseLock } from './lease-lock.ts';

export interface FollowDeps {
  readonly clock: Clock;
  /** Numbers in [0, 1). */
  readonly random: () => number;
  readonly log: Logger;
}

/** Before a watch is begun anew. It is not the only way to learn of the lease, only the quickest. */
const BEGIN_AGAIN: BackoffPolicy = { initialMs: 200, maxMs: 60_000, jitter: 0.5 };

/** A watch that lasted so long was no failure, however it ended. */
const LASTED_MS = 10_000;

/** After how long the server is asked to end a watch, in seconds. */
const WATCH_SECONDS = { min: 300, max: 600 };

/**
 * Tells `hear` of the lease as it is, and of every change as it happens; undefined: it was deleted.
 * What it tells may be old by the time it comes, and a watch may be silent for reasons of its own.
 * Whatever ends one, another follows until `signal` aborts.
 */
export async function followLease(
  lock: LeaseLock,
  hear: (lease: Lease | undefined) => void,
  { clock, random, log }: FollowDeps,
  signal: AbortSignal,
): Promise<void> {
  const pace = new Backoff(BEGIN_AGAIN, random);
  const { min, max } = WATCH_SECONDS;
  let isToldOfRefusal = false;
  while (!signal.aborted) {
    const begunMs = clock.monotonic();
    try {
      const timeoutSeconds = Math.floor(min + random() * (max - min));
      for await (const lease of lock.watch({ timeoutSeconds, signal })) hear(lease);
    } catch (error) {
      if (signal.aborted) return;
      log.v(2).info('Could not watch the lease; looking at it from time to time', {
        err: messageOf(error),
      });
      if (isApiError(error, 'forbidden') && !isToldOfRefusal) {
        isToldOfRefusal = true;
        tellPermission(error, log);
      }
    }
    if (clock.monotonic() - begunMs >= LASTED_MS) pace.reset();
    await clock.sleep(pace.next(), signal);
  }
}

/** It works without, but later. */
function tellPermission(error: Error, log: Logger): void {
  const refusal = parseRefusal(error.message);
  log.info('May not watch the lease; looking at it from time to time', {
    ...(refusal && { rule: missingRule(refusal), fix: `add the rule, and see: ${canI(refusal)}` }),
  });
}
