import { isApiError } from '../api/api-error.ts';
import { canICommand, missingRule, parseForbidden } from '../api/permission.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { LruMap } from '../util/lru-map.ts';

/** A permission that is still missing is mentioned again after so long, in milliseconds. */
const REMINDER_MS = 60 * 60_000;

/** Rules remembered so as not to repeat them; beyond that, an old one may be shown again. */
const MAX_REMEMBERED = 1000;

/**
 * A permission that is refused again after so long is missing, in milliseconds. Before, an API server
 * that starts may not have read its roles yet.
 */
export const REFUSAL_PERSISTS_MS = 10_000;

/** After so long without a refusal, the next one is a first one again, in milliseconds. */
const FORGET_MS = 30 * 60_000;

/** What is remembered of the refusals of one permission. */
interface Refused {
  sinceMs: number;
  lastMs: number;
  loggedMs: number;
}

/**
 * Logs each permission that is missing once it has been refused for ten seconds, and again every hour
 * in which it is asked for: the rule that would grant it, and the command that checks it. Not those to
 * list and watch, which caches log with what to do about both.
 */
export function logMissingPermissions(
  log: Logger,
  clock: Pick<Clock, 'monotonic'>,
): (error: unknown) => void {
  const permissions = new LruMap<string, Refused>(MAX_REMEMBERED);
  return (error) => {
    const refusal = isApiError(error, 'forbidden') ? parseForbidden(error.message) : undefined;
    if (!refusal || refusal.verb === 'list' || refusal.verb === 'watch') return;
    const rule = missingRule(refusal);
    const { user, namespace } = refusal;
    const key = JSON.stringify([rule, namespace, user]);
    const nowMs = clock.monotonic();
    const known = permissions.get(key);
    if (!known || nowMs - known.lastMs > FORGET_MS) {
      permissions.set(key, { sinceMs: nowMs, lastMs: nowMs, loggedMs: -Infinity });
      return;
    }
    known.lastMs = nowMs;
    if (nowMs - known.sinceMs < REFUSAL_PERSISTS_MS) return;
    if (nowMs - known.loggedMs < REMINDER_MS) return;
    known.loggedMs = nowMs;
    log.error(undefined, 'A permission is missing', {
      user,
      ...(namespace !== undefined && { namespace }),
      rule,
      fix: `add the rule to a ${namespace === undefined ? 'ClusterRole' : 'Role or ClusterRole'} of this user, and see: ${canICommand(refusal)}`,
    });
  };
}
