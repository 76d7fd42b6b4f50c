import { isApiError } from '../api/api-error.ts';
import { canI, missingRule, parseRefusal } from '../api/refusal.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { LruMap } from '../util/lru-map.ts';

/** A permission that is still missing is mentioned again after so long, in milliseconds. */
const REMINDER_MS = 60 * 60_000;

/** Rules remembered so as not to repeat them; beyond that, an old one may be shown again. */
const MOST_REMEMBERED = 1000;

/**
 * Tells of each permission that is missing once, and again every hour in which it was asked for: the
 * rule that would grant it, and the command that shows whether it is there. Not of those to list and
 * watch, of which caches tell with what to do about both.
 */
export function logRefusalsOnce(
  log: Logger,
  clock: Pick<Clock, 'monotonic'>,
): (error: unknown) => void {
  const told = new LruMap<string, number>(MOST_REMEMBERED);
  return (error) => {
    const refusal = isApiError(error, 'forbidden') ? parseRefusal(error.message) : undefined;
    if (!refusal || refusal.verb === 'list' || refusal.verb === 'watch') return;
    const rule = missingRule(refusal);
    const { user, namespace } = refusal;
    const key = JSON.stringify([rule, namespace, user]);
    const nowMs = clock.monotonic();
    if (nowMs - (told.get(key) ?? -Infinity) < REMINDER_MS) return;
    told.set(key, nowMs);
    log.error(undefined, 'A permission is missing', {
      user,
      ...(namespace !== undefined && { namespace }),
      rule,
      fix: `add the rule to a ${namespace === undefined ? 'ClusterRole' : 'Role or ClusterRole'} of this user, and see: ${canI(refusal)}`,
    });
  };
}
