import { isApiError } from '../api/api-error.ts';
import type { Lease } from '../api/builtin.ts';
import { jittered } from '../util/backoff.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { messageOf } from '../util/message-of.ts';
import { runAll } from '../util/run-all.ts';
import { holderOf } from './election.ts';
import type { ElectionTerms } from './leader-elector-options.ts';
import type { LeaseLock } from './lease-lock.ts';
import type { LeaseTenure } from './lease-tenure.ts';
import { followLease } from './lease-watch.ts';

export interface AcquisitionDeps {
  readonly tenure: LeaseTenure;
  readonly lock: LeaseLock;
  readonly clock: Clock;
  /** Numbers in [0, 1). */
  readonly random: () => number;
  readonly log: Logger;
}

/** Between two lines about the same trouble. */
const COMPLAINT_PERIOD_MS = 60_000;

/**
 * A candidate's wait for a lease. It looks from time to time, and besides at two moments at once:
 * when it hears that the lease is nobody's, and when nothing was heard of the holder for as long as
 * the lease lasts. A server that does not tell of changes makes it later, and nothing else: whoever
 * takes the lease has read it just before.
 */
export class Acquisition {
  readonly #deps: AcquisitionDeps;
  readonly #terms: ElectionTerms;
  /** Aborts when there is reason to look now; another one from look to look. */
  #reason = new AbortController();
  #complaint: { readonly text: string; readonly atMs: number } | undefined;

  constructor(deps: AcquisitionDeps, terms: ElectionTerms) {
    this.#deps = deps;
    this.#terms = terms;
  }

  /** Resolves to true once the lease is held, to false if `signal` aborted first. */
  async run(signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return false;
    let pauseMs = await this.#look(signal);
    if (pauseMs === undefined) return true;
    const { lock, clock, random, log } = this.#deps;
    const over = new AbortController();
    const hasty = () => this.#reason.abort();
    signal.addEventListener('abort', hasty, { once: true });
    try {
      await runAll(
        [
          async (end) => {
            while (pauseMs !== undefined && !end.aborted) {
              await clock.sleep(pauseMs, this.#reason.signal);
              if (!end.aborted) pauseMs = await this.#look(end);
            }
            over.abort();
          },
          (end) => {
            const until = AbortSignal.any([end, over.signal]);
            return followLease(lock, this.#heard, { clock, random, log }, until);
          },
        ],
        signal,
      );
    } finally {
      signal.removeEventListener('abort', hasty);
    }
    return pauseMs === undefined;
  }

  /** @returns after how long to look again, unless the lease is held now */
  async #look(signal: AbortSignal): Promise<number | undefined> {
    const { tenure, clock, random, log } = this.#deps;
    const { retryPeriodMs, renewDeadlineMs, jitter } = this.#terms;
    // What is heard from here on may be newer than what this look finds.
    this.#reason = new AbortController();
    const attempt = await tenure.attempt({ timeoutMs: renewDeadlineMs, isLeading: false }, signal);
    if (attempt.kind === 'held') return undefined;
    const pauseMs = jittered(retryPeriodMs, jitter, random);
    if (signal.aborted) return pauseMs;
    if (attempt.kind === 'failed') {
      this.#complain(attempt.error);
      return pauseMs;
    }
    log.v(4).info('Lease is held and has not expired', { leader: attempt.holder });
    return Math.min(pauseMs, attempt.untilMs - clock.monotonic());
  }

  readonly #heard = (lease: Lease | undefined): void => {
    if (lease) this.#deps.tenure.heard(lease);
    const holder = lease ? holderOf(lease) : '';
    // Mine it may be, where the answer to the claim was lost.
    if (holder === '' || holder === this.#terms.identity) this.#reason.abort();
  };

  /** A candidate that cannot even ask says so, but not every two seconds. */
  #complain(error: unknown): void {
    const { clock, log } = this.#deps;
    if (isApiError(error, 'conflict', 'alreadyExists')) {
      log.v(4).info('Another was quicker', { err: error });
      return;
    }
    const text = messageOf(error);
    const nowMs = clock.monotonic();
    const last = this.#complaint;
    if (last?.text === text && nowMs - last.atMs < COMPLAINT_PERIOD_MS) {
      log.v(4).info('Could not acquire the lease; trying again', { err: error });
      return;
    }
    this.#complaint = { text, atMs: nowMs };
    log.error(error, 'Could not acquire the lease; trying again');
  }
}
