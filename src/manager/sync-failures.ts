import { isApiError, isCausedByInvalid } from '../api/api-error.ts';
import type { ObjectKey } from '../api/object-key.ts';
import type { BackoffPolicy } from '../util/backoff.ts';
import { postpone } from '../workqueue/outcome.ts';
import type { Outcome } from '../workqueue/outcome.ts';
import { exponentialLimiter, SLOW_KEY_BACKOFF } from '../workqueue/rate-limiter.ts';
import { ServiceError } from './call-service.ts';
import type { ControllerObserver } from './controller-options.ts';
import { CATCH_UP_BACKOFF } from './read-your-writes.ts';

/** Minimum backoff of a key after a failed call of an external service: 1 s doubling to 5 min. */
const SERVICE_BACKOFF = { initialMs: 1000, maxMs: 300_000 };

/** Returns the minimum backoff after errors that a fast retry rarely resolves. */
export function minBackoffAfter(error: unknown): BackoffPolicy | undefined {
  if (isCausedByInvalid(error)) return SLOW_KEY_BACKOFF;
  return error instanceof ServiceError ? SERVICE_BACKOFF : undefined;
}

type Handler<K, C> = (key: K, context: C) => Promise<Outcome>;

/** Number of consecutive conflicts of a key that are not reported as errors. */
const QUIET_CONFLICTS = 5;

/**
 * Postpones keys whose sync ends with a conflict. Another client changed the object, and the event of the change
 * enqueues the key, so the first conflicts are no failures.
 */
export class QuietConflicts<K = ObjectKey> implements ControllerObserver {
  #backoff = exponentialLimiter<K>(CATCH_UP_BACKOFF);

  /** Returns a handler that postpones instead of throwing the first conflicts of a key. */
  wrap<C>(handler: Handler<K, C>): Handler<K, C> {
    return async (key, context) => {
      try {
        const outcome = await handler(key, context);
        this.#backoff.forget(key);
        return outcome;
      } catch (error) {
        if (!isApiError(error, 'conflict')) {
          this.#backoff.forget(key);
          throw error;
        }
        if (this.#backoff.retries(key) >= QUIET_CONFLICTS) throw error;
        return postpone(this.#backoff.when(key), 'an object changed meanwhile');
      }
    };
  }

  stopped(): void {
    this.#backoff = exponentialLimiter(CATCH_UP_BACKOFF);
  }
}
