import { isApiError } from '../api/api-error.ts';
import { canICommand, missingRule, parseForbidden } from '../api/permission.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { LruMap } from '../util/lru-map.ts';

/** Interval between two log lines about the same missing permission, in milliseconds. */
const REMINDER_MS = 60 * 60_000;

/** Number of remembered permissions; beyond that, old ones may be logged again. */
const MAX_REMEMBERED = 1000;

/**
 * Time for which a permission must have been denied before it counts as missing, in milliseconds. An API
 * server that has just started may not have read its roles.
 */
export const DENIAL_PERSISTS_MS = 10_000;

/** Time without a denial after which a permission is forgotten, in milliseconds. */
const FORGET_MS = 30 * 60_000;

/** Times of the denials of one permission. */
interface Denials {
  sinceMs: number;
  lastMs: number;
  loggedMs: number;
}

/**
 * Returns a function that logs missing permissions, with the RBAC rule that grants them and the kubectl command
 * that checks it. A permission is logged after it was denied for ten seconds, and then once an hour while
 * denials continue. Denied lists and watches are left to the caches, which log them.
 */
export function logMissingPermissions(
  log: Logger,
  clock: Pick<Clock, 'monotonic'>,
): (error: unknown) => void {
  const permissions = new LruMap<string, Denials>(MAX_REMEMBERED);
  return (error) => {
    const denial = isApiError(error, 'forbidden') ? parseForbidden(error.message) : undefined;
    if (!denial || denial.verb === 'list' || denial.verb === 'watch') return;
    const rule = missingRule(denial);
    const { user, namespace } = denial;
    const key = JSON.stringify([rule, namespace, user]);
    const nowMs = clock.monotonic();
    const known = permissions.get(key);
    if (!known || nowMs - known.lastMs > FORGET_MS) {
      permissions.set(key, { sinceMs: nowMs, lastMs: nowMs, loggedMs: -Infinity });
      return;
    }
    known.lastMs = nowMs;
    if (nowMs - known.sinceMs < DENIAL_PERSISTS_MS) return;
    if (nowMs - known.loggedMs < REMINDER_MS) return;
    known.loggedMs = nowMs;
    log.error(undefined, 'A permission is missing', {
      user,
      ...(namespace !== undefined && { namespace }),
      rule,
      fix: `add the rule to a ${namespace === undefined ? 'ClusterRole' : 'Role or ClusterRole'} of this user, and see: ${canICommand(denial)}`,
    });
  };
}
