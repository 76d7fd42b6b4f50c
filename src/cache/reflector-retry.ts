import type { KubernetesObject } from '../api/object.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { messageOf } from '../util/values.ts';
import type { ProgressClock } from './progress.ts';
import type { Waiting, Working } from './reflector-state.ts';
import type { FailureLog } from './failure-log.ts';
import { FailureReporter } from './failure-log.ts';
import { isApiError, isExpired } from '../api/api-error.ts';
import { Backoff } from '../util/backoff.ts';
import type { BackoffPolicy } from '../util/backoff.ts';

/** A watch that has stood for so long, in milliseconds, shows that the server is back. */
const STANDING_MS = 1000;

/** Dependencies of `Setbacks`. */
export interface SetbacksDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  readonly progress: ProgressClock;
  readonly resource: string;
  /** @default one of its own */
  readonly troubles?: FailureLog | undefined;
}

/** What follows from the failures of one reflector: how long it waits, and what people are told. */
export class RetryPolicy {
  readonly #clock: Clock;
  readonly #progress: ProgressClock;
  readonly #pace: FailureBackoff;
  readonly #trouble: FailureReporter;

  constructor({ clock, log, random, progress, resource, troubles }: SetbacksDeps) {
    this.#clock = clock;
    this.#progress = progress;
    this.#pace = new FailureBackoff(clock, random);
    this.#trouble = new FailureReporter({ clock, log, resource, troubles });
  }

  /** A pause before `next`, after a failure that people should hear of. */
  retry<T extends KubernetesObject>(
    error: unknown,
    action: 'list' | 'watch',
    next: Working<T>,
  ): Waiting<T> {
    const waiting = this.wait(error, next);
    const told = this.#trouble.failed(error, action, waiting.delayMs);
    this.#progress.failed(error, told);
    return waiting;
  }

  /** A pause before `next`, after something that is no failure. */
  wait<T extends KubernetesObject>(error: unknown, next: Working<T>): Waiting<T> {
    const reason = error === undefined ? 'The watch was closed' : messageOf(error);
    return { phase: 'waiting', delayMs: this.#pace.next(error), reason, next };
  }

  /** The server has done what it was asked for: the next pause is a short one again. */
  served(): void {
    this.#pace.succeeded();
  }

  /**
   * A watch stands. That the trouble is over is told when it has stood for a while. The function
   * returned is to be called when it ends.
   */
  watchStands(): () => void {
    this.#pace.succeeded();
    this.#progress.recovered();
    if (!this.#trouble.present) return () => undefined;
    return this.#clock.after(STANDING_MS, () => this.over());
  }

  /** It works again. */
  over(): void {
    this.#trouble.over();
  }

  /** The reflector has stopped. */
  stop(): void {
    this.#trouble.stop();
  }
}

/** client-go's: 0.8 s doubling to 30 s, each spread to up to twice its length. */
const RETRY_POLICY: BackoffPolicy = { initialMs: 800, maxMs: 30_000, factor: 2, jitter: 1 };

/** After so long without a failure the ladder starts from its first rung. */
const WELL_AFTER_MS = 2 * 60_000;

/** A CRD may be installed at any moment, and its user is watching the screen. */
const MISSING_MAX_MS = 5000;

/** A server may ask for patience, not for silence. */
const RETRY_AFTER_MAX_MS = 2 * 60_000;

/**
 * How long a reflector waits before it tries again. The delay doubles from failure to failure and
 * falls back only after two minutes of health, however long single attempts take; a success in
 * between, such as a list before each failing watch, is not yet health.
 *
 * A server that has forgotten a resourceVersion is there, and a list mends it: what was waited for its
 * return is not waited once more. client-go does, for up to a minute after a long outage.
 */
export class FailureBackoff {
  readonly #clock: Clock;
  readonly #backoff: Backoff;
  /** For 410, that a server which always says so is not asked ever so often. */
  readonly #expired: Backoff;
  #wellSinceMs: number | undefined;

  constructor(clock: Clock, random: () => number, policy: BackoffPolicy = RETRY_POLICY) {
    this.#clock = clock;
    this.#backoff = new Backoff(policy, random);
    this.#expired = new Backoff(policy, random);
  }

  /** Something worked. */
  succeeded(): void {
    this.#wellSinceMs ??= this.#clock.monotonic();
  }

  /** The delay after a failure, in milliseconds; never shorter than the server asked for. */
  next(error: unknown): number {
    const wellForMs = this.#clock.monotonic() - (this.#wellSinceMs ?? Infinity);
    if (wellForMs >= WELL_AFTER_MS) {
      this.#backoff.reset();
      this.#expired.reset();
    }
    this.#wellSinceMs = undefined;
    const delayMs = (isExpired(error) ? this.#expired : this.#backoff).next();
    if (isApiError(error, 'notFound')) return Math.min(delayMs, MISSING_MAX_MS);
    const askedMs = isApiError(error) ? (error.retryAfterMs ?? 0) : 0;
    return Math.max(delayMs, Math.min(askedMs, RETRY_AFTER_MAX_MS));
  }
}
