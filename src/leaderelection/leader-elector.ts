import { LEASES } from '../api/builtin.ts';
import type { Lease } from '../api/builtin.ts';
import { apiVersionOf } from '../api/resource.ts';
import { noLeaderElectionMetrics } from '../metrics/leader-election-metrics.ts';
import type { LeaderElectionMetrics } from '../metrics/leader-election-metrics.ts';
import { AbruptStop } from '../util/abrupt-stop.ts';
import type { Clock } from '../util/clock.ts';
import { Deferred } from '../util/deferred.ts';
import { formatDuration } from '../util/duration.ts';
import type { Logger } from '../util/logger.ts';
import { runAll } from '../util/run-all.ts';
import type { Runnable } from '../util/runnable.ts';
import { untilAborted } from '../util/until-aborted.ts';
import { Acquisition } from './acquisition.ts';
import { electionTerms } from './leader-elector-options.ts';
import type { ElectionTerms, LeaderElectorOptions } from './leader-elector-options.ts';
import { LeaseLock } from './lease-lock.ts';
import type { LeaseClient } from './lease-lock.ts';
import { LeaseTenure } from './lease-tenure.ts';

export type { LeaderElectorOptions } from './leader-elector-options.ts';

/** Says on the lease who leads; an `EventRecorder` is one. */
export interface LeadershipRecorder {
  normal(
    subject: Pick<Lease, 'apiVersion' | 'kind' | 'metadata'>,
    reason: string,
    message: string,
  ): unknown;
}

export interface LeaderElectorDeps {
  /**
   * For leases alone: its own connection, so that no traffic holds up a renewal; a timeout below
   * the renew deadline; and no write fence.
   */
  readonly client: LeaseClient;
  readonly clock: Clock;
  /** Numbers in [0, 1). */
  readonly random: () => number;
  readonly log: Logger;
  /** @default none */
  readonly recorder?: LeadershipRecorder | undefined;
  /**
   * Brings to the server what was recorded, within a time of its own. The lease is held until then:
   * who does not lead writes nothing, events neither.
   * @default nothing to bring
   */
  readonly flushEvents?: (() => Promise<unknown>) | undefined;
  /** @default none */
  readonly metrics?: LeaderElectionMetrics | undefined;
  /**
   * Told of the lease whenever it was read, heard of or written.
   * @default nobody is
   */
  readonly onLease?: ((lease: Lease) => void) | undefined;
}

/** The lease is another's, or may be: whatever it protected must end at once. */
export class LeadershipLostError extends AbruptStop {
  override readonly name = 'LeadershipLostError';
}

/**
 * Holds a Lease, or waits for it: of all processes that ask for the same one, one leads at a time.
 *
 * **No clock is compared with another's.** A candidate counts how long it has itself seen the lease
 * unchanged, on its monotonic clock, and takes it when that is longer than the duration written in
 * it. So clocks may be wrong by any amount, and may jump; but they must not run at rates that differ
 * by more than `leaseDurationMs / renewDeadlineMs`. A candidate that is new waits a whole duration.
 * It watches the lease meanwhile, and so takes one that is given back at once.
 *
 * **A leader counts from when it sent** the last renewal that succeeded, which is before anybody
 * could see it. `renewDeadlineMs` after that it has lost the lease, whether or not somebody took
 * it: `mayWrite` is false from that moment on, also in a process that was stopped meanwhile and has
 * not come to know it, and `run` rejects with a `LeadershipLostError`. So it does as soon as it reads
 * that another holds the lease. What was sent before and is still under way is for preconditions.
 *
 * **Stopped**, it renews until the events are written that tell of it, then gives the lease back, if
 * it is (by what the server says, not by what it remembers) still its own. A lease that was lost is
 * left to expire, without an event; so is one whose `run` was ended by an `AbruptStop`.
 *
 * It differs from client-go in three places: there the deadline counts from the first attempt to
 * renew, the release believes what was last seen, and a leader who reads of another goes on until
 * the deadline.
 */
export class LeaderElector implements Runnable {
  readonly name = 'leader-election';
  readonly #deps: LeaderElectorDeps;
  readonly #log: Logger;
  readonly #metrics: LeaderElectionMetrics;
  readonly #terms: ElectionTerms;
  readonly #lockName: string;
  readonly #lockKey: string;
  readonly #tenure: LeaseTenure;
  readonly #acquisition: Acquisition;
  readonly #won = new Deferred();
  #role: 'candidate' | 'leader' | 'lost' | 'retired' = 'candidate';

  /** @throws {RangeError} naming the option that is wrong, what is expected of it, and its value */
  constructor(deps: LeaderElectorDeps, options: LeaderElectorOptions) {
    this.#terms = electionTerms(options);
    const lock = new LeaseLock(deps.client, options);
    this.#lockName = options.name;
    this.#lockKey = lock.key;
    this.#deps = deps;
    this.#log = deps.log.with({ lock: lock.key });
    this.#metrics = deps.metrics ?? noLeaderElectionMetrics;
    const { clock, random, onLease } = deps;
    const onSlowPath = () => this.#metrics.slowPath(options.name);
    const common = { lock, clock, random, log: this.#log };
    this.#tenure = new LeaseTenure({ ...common, onSlowPath, onLease }, this.#terms);
    this.#acquisition = new Acquisition({ ...common, tenure: this.#tenure }, this.#terms);
  }

  /** Whoever held the lease when it was last read or heard of; empty: nobody was seen to. */
  get leader(): string {
    return this.#tenure.leader;
  }

  get isLeading(): boolean {
    return this.#role === 'leader';
  }

  /** It led, and may no longer: `run` is about to reject, or has. */
  get hasLost(): boolean {
    return this.#role === 'lost';
  }

  /**
   * True while no other process can hold the lease, by this moment's clock: what a write fence asks.
   * The margin is what the lease lasts beyond the renew deadline.
   */
  mayWrite(): boolean {
    return this.#role === 'leader' && this.#deps.clock.monotonic() < this.#tenure.deadlineMs;
  }

  /** Resolves to true once this process leads, to false if `signal` aborts before. */
  acquired(signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const abort = () => resolve(false);
      if (signal.aborted) abort();
      signal.addEventListener('abort', abort, { once: true });
      void this.#won.promise.then(() => {
        signal.removeEventListener('abort', abort);
        resolve(true);
      });
    });
  }

  /**
   * Why this process should be ended by force, if it should: it leads, or did, and the end of its
   * lease has long passed. Who does not lead is well.
   */
  health(): string | undefined {
    if (this.#role !== 'leader' && this.#role !== 'lost') return undefined;
    const { leaseDurationMs, healthToleranceMs } = this.#terms;
    const ageMs = this.#deps.clock.monotonic() - this.#tenure.renewedMs;
    return ageMs > leaseDurationMs + healthToleranceMs
      ? `failed election to renew leadership on lease ${this.#lockKey}`
      : undefined;
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#metrics.leading(this.#lockName, false);
    this.#log.info('Attempting to acquire leader lease...', { identity: this.#terms.identity });
    try {
      if (await this.#acquisition.run(signal)) await this.#lead(signal);
      this.#role = 'retired';
    } finally {
      this.#metrics.leading(this.#lockName, false);
    }
    const { releaseOnCancel } = this.#terms;
    if (releaseOnCancel && this.#tenure.hasClaimed && !(signal.reason instanceof AbruptStop)) {
      await this.#tenure.release();
    }
  }

  /** @throws {LeadershipLostError} */
  async #lead(signal: AbortSignal): Promise<void> {
    this.#role = 'leader';
    this.#metrics.leading(this.#lockName, true);
    this.#log.info('Successfully acquired lease');
    this.#record('became leader');
    this.#won.resolve();
    const told = new AbortController();
    await runAll(
      [
        (end) => this.#keepRenewing(end),
        async (end) => {
          await untilAborted(AbortSignal.any([signal, end]));
          if (end.aborted) return;
          if (!(signal.reason instanceof AbruptStop)) {
            this.#record('stopped leading');
            await this.#deps.flushEvents?.();
          }
          told.abort();
        },
      ],
      told.signal,
    );
  }

  async #keepRenewing(end: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const { retryPeriodMs } = this.#terms;
    let why: unknown;
    for (;;) {
      await clock.sleep(Math.min(retryPeriodMs, this.#tenure.deadlineMs - clock.monotonic()), end);
      if (end.aborted) return;
      const leftMs = this.#tenure.deadlineMs - clock.monotonic();
      if (leftMs <= 0) throw this.#lost(why);
      const attempt = await this.#tenure.attempt({ timeoutMs: leftMs, isLeading: true }, end);
      if (end.aborted) return;
      switch (attempt.kind) {
        case 'held':
          why = undefined;
          this.#log.v(5).info('Renewed the lease');
          break;
        case 'taken':
          throw this.#lost(undefined, attempt.holder);
        case 'failed':
          why = attempt.error;
          this.#log.info('Could not renew the lease; trying again', {
            err: why,
            renewedAgo: formatDuration(Math.round(clock.monotonic() - this.#tenure.renewedMs)),
          });
      }
    }
  }

  #lost(cause: unknown, holder?: string): LeadershipLostError {
    this.#role = 'lost';
    const { renewDeadlineMs } = this.#terms;
    const why =
      holder === undefined
        ? `it was not renewed within ${formatDuration(renewDeadlineMs)}`
        : holder === ''
          ? 'somebody has released it'
          : `${JSON.stringify(holder)} holds it`;
    return new LeadershipLostError(`leader election lost: lease ${this.#lockKey}: ${why}`, {
      cause,
    });
  }

  #record(what: 'became leader' | 'stopped leading'): void {
    const { lease } = this.#tenure;
    if (!lease) return;
    this.#deps.recorder?.normal(
      { apiVersion: apiVersionOf(LEASES), kind: LEASES.kind, metadata: lease.metadata },
      'LeaderElection',
      `${this.#terms.identity} ${what}`,
    );
  }
}
