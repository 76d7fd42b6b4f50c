import { isApiError } from '../api/api-error.ts';
import { withJitter } from '../util/backoff.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { messageOf } from '../util/values.ts';
import type { ElectionSettings } from './leader-elector-options.ts';
import type { LeaseSession } from './lease-session.ts';

/** Dependencies of `LeaseCandidate`. */
export interface LeaseCandidateDeps {
  readonly session: LeaseSession;
  readonly clock: Clock;
  /** Numbers in [0, 1). */
  readonly random: () => number;
  readonly log: Logger;
}

/** Minimum time between two log lines about the same error. */
const REPEAT_ERROR_MS = 60_000;

/**
 * Acquires a lease. It polls the lease periodically, and at once in two cases: when the watch shows
 * that the lease has no holder, and when its last claim has expired. If the watch does not work, acquisition
 * takes longer; it is still correct, because every attempt reads the lease first.
 */
export class LeaseCandidate {
  readonly #deps: LeaseCandidateDeps;
  readonly #settings: ElectionSettings;
  /** Aborts when the lease should be polled now; replaced at each poll. */
  #pollNow = new AbortController();
  #lastError: { readonly text: string; readonly atMs: number } | undefined;

  constructor(deps: LeaseCandidateDeps, settings: ElectionSettings) {
    this.#deps = deps;
    this.#settings = settings;
  }

  /**
   * Resolves to true once the lease is held, to false if `signal` aborted first. An acquisition in flight completes,
   * unless `abrupt` aborts.
   */
  async run(signal: AbortSignal, abrupt: AbortSignal): Promise<boolean> {
    while (!signal.aborted) {
      const pauseMs = await this.#poll(signal, abrupt);
      if (pauseMs === undefined) return true;
      await this.#deps.clock.sleep(pauseMs, AbortSignal.any([signal, this.#pollNow.signal]));
    }
    return false;
  }

  /** Polls at once if the watch shows no holder. */
  observed(holder: string): void {
    // We hold it if the response to our acquisition was lost.
    if (holder === '' || holder === this.#settings.identity) this.#pollNow.abort();
  }

  /** @returns the delay until the next poll in milliseconds, or undefined if the lease was acquired */
  async #poll(signal: AbortSignal, abrupt: AbortSignal): Promise<number | undefined> {
    const { session, clock, random, log } = this.#deps;
    const { retryPeriodMs, renewDeadlineMs: timeoutMs, jitter } = this.#settings;
    // Later watch events may be newer than what this poll reads.
    this.#pollNow = new AbortController();
    const attempt = await session.attempt({ timeoutMs, signal, abrupt, isLeading: false });
    if (attempt.kind === 'held') return undefined;
    const pauseMs = withJitter(retryPeriodMs, jitter, random);
    if (signal.aborted) return pauseMs;
    if (attempt.kind === 'failed') {
      this.#logFailure(attempt.error);
      return pauseMs;
    }
    log.v(4).info('Lease is held and has not expired', { leader: attempt.holder });
    return Math.min(pauseMs, attempt.untilMs - clock.monotonic());
  }

  /** Logs why the lease could not be read, at most once a minute for the same error. */
  #logFailure(error: unknown): void {
    const { clock, log } = this.#deps;
    if (isApiError(error, 'conflict', 'alreadyExists')) {
      log.v(4).info('Another candidate acquired the lease first', { err: error });
      return;
    }
    const text = messageOf(error);
    const nowMs = clock.monotonic();
    const last = this.#lastError;
    if (last?.text === text && nowMs - last.atMs < REPEAT_ERROR_MS) {
      log.v(4).info('Could not acquire the lease; trying again', { err: error });
      return;
    }
    this.#lastError = { text, atMs: nowMs };
    log.error(error, 'Could not acquire the lease; trying again');
  }
}
