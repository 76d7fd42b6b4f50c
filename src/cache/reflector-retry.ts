import { isApiError, isExpired } from '../api/api-error.ts';
import type { ServerReachability } from '../client/server-reachability.ts';
import { Backoff, backoffMs, withJitter } from '../util/backoff.ts';
import type { BackoffPolicy } from '../util/backoff.ts';
import type { Clock } from '../util/clock.ts';
import { messageOf } from '../util/values.ts';
import { FailureReporter } from './failure-log.ts';
import type { FailureReporterDeps } from './failure-log.ts';
import type { ReflectorProgress } from './progress.ts';
import type { RequestState, Waiting } from './reflector-state.ts';
import { RelistSpread } from './relist-spread.ts';

/** client-go's policy: 0.8 s doubling to 30 s, each with up to 100 % jitter. */
const BACKOFF_POLICY: BackoffPolicy = { initialMs: 800, maxMs: 30_000, factor: 2, jitter: 1 };

/** Time without a failure after which the backoff is reset, in milliseconds. */
const RESET_AFTER_MS = 2 * 60_000;

/** Longest delay while the resource is not served: a user who installs a CRD waits for a result. */
const NOT_FOUND_MAX_MS = 5000;

/** Upper bound for `Retry-After`, in milliseconds. */
const RETRY_AFTER_MAX_MS = 2 * 60_000;

/** Reflectors that wait for one server attempt to reach it within this time after its first answer, at random. */
const SPREAD_MS = 1000;

/** Duration after which a watch shows that the server has recovered, in milliseconds. */
const RECOVERED_AFTER_MS = 1000;

/**
 * Delay of a reflector's retries. It doubles with each failure and is reset only after two minutes
 * without one, however long single attempts take. A success in between, such as a list before each
 * failing watch, does not reset it.
 *
 * "410 Expired" has a backoff of its own. The server is available then and a list resolves it, so the
 * first list is not delayed, except to spread the lists of many reflectors. Only if the history expires
 * again within two minutes, the delays start from 0.8 s. client-go waits for 0.8 s to a minute.
 *
 * So has a rejection by authentication or authorization. A kube-apiserver that starts rejects requests
 * until it has read its roles, and its next answer must not wait as long as the outage before it.
 */
export class FailureBackoff {
  readonly #clock: Clock;
  readonly #backoff: Backoff;
  readonly #expired: Backoff;
  readonly #denied: Backoff;
  readonly #random: () => number;
  readonly #spread: RelistSpread;
  #hasExpired = false;
  #successSinceMs: number | undefined;

  constructor(
    clock: Clock,
    random: () => number,
    spread: RelistSpread = new RelistSpread(clock),
    policy: BackoffPolicy = BACKOFF_POLICY,
  ) {
    this.#clock = clock;
    this.#random = random;
    this.#spread = spread;
    this.#backoff = new Backoff(policy, random);
    this.#expired = new Backoff(policy, random);
    this.#denied = new Backoff(policy, random);
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
      this.#denied.reset();
      this.#hasExpired = false;
    }
    this.#successSinceMs = undefined;
    const delayMs = this.#delayAfter(error);
    if (isApiError(error, 'notFound')) return Math.min(delayMs, NOT_FOUND_MAX_MS);
    const retryAfterMs = isApiError(error) ? (error.retryAfterMs ?? 0) : 0;
    return Math.max(delayMs, Math.min(retryAfterMs, RETRY_AFTER_MAX_MS));
  }

  #delayAfter(error: unknown): number {
    if (isApiError(error, 'unauthorized', 'forbidden')) return this.#denied.next();
    if (!isExpired(error)) return this.#backoff.next();
    if (this.#hasExpired) return this.#expired.next();
    this.#hasExpired = true;
    return this.#spread.next(this.#random);
  }
}

/** Dependencies of `RetryPolicy`. */
export interface RetryPolicyDeps extends FailureReporterDeps {
  readonly random: () => number;
  readonly progress: ReflectorProgress;
  /** @default a new one */
  readonly relistSpread?: RelistSpread | undefined;
  /** @default a wait ends only after its whole delay */
  readonly reachability?: ServerReachability | undefined;
}

/**
 * Handles the failures of one reflector: the delay before the next attempt, the log and the progress.
 *
 * **A wait for an absent server ends early** when any other request to the server succeeds, so that the backoff of a long
 * outage does not outlast it. The reflectors that wait make their attempts at random within one second.
 * If an early attempt fails, as behind a load balancer with one broken server, the next one comes later: early attempts
 * have a backoff of their own, which a watch resets that lasts for a second. Thus they at most double the number
 * of requests.
 */
export class RetryPolicy {
  readonly #clock: Clock;
  readonly #progress: ReflectorProgress;
  readonly #backoff: FailureBackoff;
  readonly #reporter: FailureReporter;
  readonly #reachability: ServerReachability | undefined;
  readonly #random: () => number;
  /** The current attempt was made before the end of its delay. */
  #isEarly = false;
  /** Early attempts that failed since the last watch that lasted. */
  #earlyFailures = 0;

  constructor(deps: RetryPolicyDeps) {
    this.#clock = deps.clock;
    this.#progress = deps.progress;
    this.#reachability = deps.reachability;
    this.#random = deps.random;
    this.#backoff = new FailureBackoff(deps.clock, deps.random, deps.relistSpread);
    this.#reporter = new FailureReporter(deps);
  }

  /** Logs a failure of `action` and returns the delay before `next`. */
  retry(error: unknown, action: 'list' | 'watch', next: RequestState): Waiting {
    const waiting = this.wait(error, next);
    const isLogged = this.#reporter.failed(error, action, waiting.delayMs);
    this.#progress.failed(error, isLogged);
    return waiting;
  }

  /** Returns the delay before `next` after an event that is not logged as a failure. */
  wait(error: unknown, next: RequestState): Waiting {
    const reason = error === undefined ? 'The watch was closed' : messageOf(error);
    if (this.#isEarly) this.#earlyFailures++;
    this.#isEarly = false;
    const delayMs = this.#backoff.next(error);
    if (!isServerFailure(error)) return { phase: 'waiting', delayMs, reason, next };
    const earliestMs = withJitter(backoffMs(BACKOFF_POLICY, this.#earlyFailures), 1, this.#random);
    return { phase: 'waiting', delayMs, earliestMs, reason, next };
  }

  /** Waits for the delay, or until the server has answered another request. */
  async pause({ delayMs, earliestMs }: Waiting, signal: AbortSignal): Promise<void> {
    const reachability = this.#reachability;
    if (!reachability || earliestMs === undefined) return this.#clock.sleep(delayMs, signal);
    const startMs = this.#clock.monotonic();
    const answered = new AbortController();
    const unsubscribe = reachability.onAnswer(() => answered.abort());
    await this.#clock.sleep(delayMs, AbortSignal.any([signal, answered.signal]));
    unsubscribe();
    if (!answered.signal.aborted || signal.aborted) return;
    const passedMs = this.#clock.monotonic() - startMs;
    const earlyMs = Math.max(earliestMs, passedMs + this.#random() * SPREAD_MS);
    this.#isEarly = earlyMs < delayMs;
    await this.#clock.sleep(Math.min(earlyMs, delayMs) - passedMs, signal);
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
    const wasEarly = this.#isEarly || this.#earlyFailures > 0;
    if (!this.#reporter.isFailing && !wasEarly) return () => undefined;
    return this.#clock.after(RECOVERED_AFTER_MS, () => {
      this.#isEarly = false;
      this.#earlyFailures = 0;
      this.recovered();
    });
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

/** The server is unreachable or overloaded, whatever the resource, and does not say for how long. */
function isServerFailure(error: unknown): boolean {
  return (
    isApiError(error, 'unreachable', 'timeout', 'unavailable', 'internal') &&
    error.retryAfterMs === undefined
  );
}
