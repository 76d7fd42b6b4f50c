import { isApiError, isExpired } from '../api/api-error.ts';
import type { KubernetesObject } from '../api/object.ts';
import { Backoff } from '../util/backoff.ts';
import type { BackoffPolicy } from '../util/backoff.ts';
import type { Clock } from '../util/clock.ts';
import { messageOf } from '../util/values.ts';
import { FailureReporter } from './failure-log.ts';
import type { FailureReporterDeps } from './failure-log.ts';
import type { ProgressClock } from './progress.ts';
import type { Waiting, Working } from './reflector-state.ts';

/** client-go's policy: 0.8 s doubling to 30 s, each with up to 100 % jitter. */
const BACKOFF_POLICY: BackoffPolicy = { initialMs: 800, maxMs: 30_000, factor: 2, jitter: 1 };

/** Time without a failure after which the backoff is reset, in milliseconds. */
const RESET_AFTER_MS = 2 * 60_000;

/** Longest delay while the resource is not served: a user who installs a CRD waits for a result. */
const NOT_FOUND_MAX_MS = 5000;

/** Upper bound for `Retry-After`, in milliseconds. */
const RETRY_AFTER_MAX_MS = 2 * 60_000;

/** Duration after which a watch shows that the server has recovered, in milliseconds. */
const RECOVERED_AFTER_MS = 1000;

/**
 * Delay of a reflector's retries. It doubles with each failure and is reset only after two minutes
 * without one, however long single attempts take. A success in between, such as a list before each
 * failing watch, does not reset it.
 *
 * "410 Expired" has a backoff of its own. The server is available then and a list resolves it, so it
 * must not wait as long as the outage before it. client-go does wait, for up to a minute.
 */
export class FailureBackoff {
  readonly #clock: Clock;
  readonly #backoff: Backoff;
  readonly #expired: Backoff;
  #successSinceMs: number | undefined;

  constructor(clock: Clock, random: () => number, policy: BackoffPolicy = BACKOFF_POLICY) {
    this.#clock = clock;
    this.#backoff = new Backoff(policy, random);
    this.#expired = new Backoff(policy, random);
  }

  /** Records a success. */
  succeeded(): void {
    this.#successSinceMs ??= this.#clock.monotonic();
  }

  /** Returns the delay after a failure in milliseconds, at least the server's `Retry-After`. */
  next(error: unknown): number {
    const successMs = this.#clock.monotonic() - (this.#successSinceMs ?? Infinity);
    if (successMs >= RESET_AFTER_MS) {
      this.#backoff.reset();
      this.#expired.reset();
    }
    this.#successSinceMs = undefined;
    const delayMs = (isExpired(error) ? this.#expired : this.#backoff).next();
    if (isApiError(error, 'notFound')) return Math.min(delayMs, NOT_FOUND_MAX_MS);
    const retryAfterMs = isApiError(error) ? (error.retryAfterMs ?? 0) : 0;
    return Math.max(delayMs, Math.min(retryAfterMs, RETRY_AFTER_MAX_MS));
  }
}

/** Dependencies of `RetryPolicy`. */
export interface RetryPolicyDeps extends FailureReporterDeps {
  readonly random: () => number;
  readonly progress: ProgressClock;
}

/** Handles the failures of one reflector: the delay before the next attempt, the log and the progress. */
export class RetryPolicy {
  readonly #clock: Clock;
  readonly #progress: ProgressClock;
  readonly #backoff: FailureBackoff;
  readonly #reporter: FailureReporter;

  constructor(deps: RetryPolicyDeps) {
    this.#clock = deps.clock;
    this.#progress = deps.progress;
    this.#backoff = new FailureBackoff(deps.clock, deps.random);
    this.#reporter = new FailureReporter(deps);
  }

  /** Logs a failure of `action` and returns the delay before `next`. */
  retry<T extends KubernetesObject>(
    error: unknown,
    action: 'list' | 'watch',
    next: Working<T>,
  ): Waiting<T> {
    const waiting = this.wait(error, next);
    const isLogged = this.#reporter.failed(error, action, waiting.delayMs);
    this.#progress.failed(error, isLogged);
    return waiting;
  }

  /** Returns the delay before `next` after an event that is not logged as a failure. */
  wait<T extends KubernetesObject>(error: unknown, next: Working<T>): Waiting<T> {
    const reason = error === undefined ? 'The watch was closed' : messageOf(error);
    return { phase: 'waiting', delayMs: this.#backoff.next(error), reason, next };
  }

  /** Records a successful list. */
  listed(): void {
    this.#backoff.succeeded();
  }

  /**
   * Records a watch that the server has accepted. The recovery is logged when it has lasted for a
   * second.
   *
   * @returns a function to call when the watch ends
   */
  watchStarted(): () => void {
    this.#backoff.succeeded();
    this.#progress.recovered();
    if (!this.#reporter.isFailing) return () => undefined;
    return this.#clock.after(RECOVERED_AFTER_MS, () => this.recovered());
  }

  /** Logs the end of the failures, if there were any. */
  recovered(): void {
    this.#reporter.recovered();
  }

  /** Forgets the failures, because the reflector has stopped. */
  stop(): void {
    this.#reporter.stop();
  }
}
