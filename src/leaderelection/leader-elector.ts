import { LEASES } from '../api/builtin.ts';
import type { Lease } from '../api/builtin.ts';
import { apiVersionOf } from '../api/resource.ts';
import type { LeaderElectionMetrics } from '../metrics/leader-election-metrics.ts';
import { AbruptStop, isAbruptStop, runAll } from '../util/runnable.ts';
import type { Clock } from '../util/clock.ts';
import { Deferred } from '../util/deferred.ts';
import { formatDuration } from '../util/duration.ts';
import type { Logger } from '../util/logger.ts';
import type { Runnable } from '../util/runnable.ts';
import { settledBeforeAbort } from '../util/abort.ts';
import { LeaseCandidate } from './lease-candidate.ts';
import { electionSettings } from './leader-elector-options.ts';
import type { ElectionSettings, LeaderElectorOptions } from './leader-elector-options.ts';
import { LeaseLock } from './lease-lock.ts';
import type { LeaseChange, LeaseClient } from './lease-lock.ts';
import { LeaseSession } from './lease-session.ts';
import { holderOf } from './lease-state.ts';
import { watchLease } from './lease-watch.ts';

export type { LeaderElectorOptions } from './leader-elector-options.ts';

/** Records an event on the lease when the leader changes; an `EventRecorder` has this form. */
export interface LeadershipRecorder {
  /** Records an event of type Normal on the lease. */
  normal(
    subject: Pick<Lease, 'apiVersion' | 'kind' | 'metadata'>,
    reason: string,
    message: string,
  ): unknown;
}

/** Dependencies of {@link LeaderElector}. */
export interface LeaderElectorDeps {
  /**
   * A client for leases only: without a rate limit, so that other requests do not delay a renewal; with a timeout below
   * the renew deadline; without a write fence.
   */
  readonly client: LeaseClient;
  readonly clock: Clock;
  /** Numbers in [0, 1). */
  readonly random: () => number;
  readonly log: Logger;
  /** @default none */
  readonly recorder?: LeadershipRecorder | undefined;
  /** @default none */
  readonly metrics?: LeaderElectionMetrics | undefined;
  /**
   * Called with the lease whenever it was read, watched or written.
   * @default none
   */
  readonly onLease?: ((lease: Lease) => void) | undefined;
}

/** Attempts to renew that have less time are not started. */
const SHORTEST_ATTEMPT_MS = 1;

/**
 * Acquires and renews a Lease: of all processes with the same Lease, one leads at a time.
 *
 * **Clocks are not compared.** A candidate measures on its monotonic clock how long the lease has not
 * changed, and acquires it after the duration written in the lease. Clocks may differ and may jump;
 * their rates must not differ by more than `leaseDurationMs / renewDeadlineMs`. A new candidate waits
 * one whole duration. It watches the lease meanwhile, and acquires a released lease at once.
 *
 * **The leader's deadline** counts from when the last successful renewal was sent. After `renewDeadlineMs` it
 * has lost the lease, whether or not another process acquired it. From that moment `mayWrite` is false, also in a
 * process that was frozen meanwhile, and `run` rejects with an `AbruptStop` of the kind `leadershipLost`. The same
 * happens as soon as it reads or watches that another process, or none, holds the lease. Requests in flight are
 * protected by preconditions.
 *
 * **A lease that another client deletes, empties or overwrites** was not released: a candidate that has seen the claim
 * waits for the claim's duration, counted from when it observed the change. The leader's deadline has passed by then,
 * whether or not the leader observed anything. A leader that watches the deletion may not write until it has created
 * the lease again. A process that has never seen the claim, because it started after the lease was deleted, cannot
 * wait: it may lead until the former leader's watch, its next renewal, or its deadline stops that one.
 *
 * **When stopped**, it completes the acquisition or renewal in flight and releases the lease at once, unless another
 * process has changed it. Its events may be written later. A lost lease expires without an event; so does the lease
 * if `run` was ended by an `AbruptStop`.
 *
 * It differs from client-go in four points: there the deadline counts from the first attempt to renew,
 * the release relies on the last observed state, a leader that reads of another leader continues until the
 * deadline, and a candidate acquires a deleted or emptied lease at once.
 *
 * @example
 * ```ts
 * import { HttpClient, silentLogger, systemClock } from 'crd-controller';
 * import { LeaderElector } from 'crd-controller/leaderelection';
 * import { ApiServer } from 'crd-controller/testing';
 *
 * const client = new HttpClient({ handler: new ApiServer().handler, server: 'https://test' });
 * const deps = { client, clock: systemClock, log: silentLogger, random: Math.random };
 * const options = { namespace: 'default', name: 'example', identity: 'replica-1' };
 * const elector = new LeaderElector(deps, options);
 * const stop = new AbortController();
 * const running = elector.run(stop.signal);
 * console.log(await elector.acquired(stop.signal)); // prints: true
 * stop.abort();
 * await running;
 * ```
 */
export class LeaderElector implements Runnable {
  readonly name = 'leader-election';
  readonly #deps: LeaderElectorDeps;
  readonly #log: Logger;
  readonly #settings: ElectionSettings;
  readonly #lockName: string;
  readonly #lockKey: string;
  readonly #session: LeaseSession;
  readonly #candidate: LeaseCandidate;
  readonly #lock: LeaseLock;
  readonly #acquired = new Deferred();
  /** Aborts when the lease should be renewed now; replaced at each attempt. */
  #renewNow = new AbortController();
  #role: 'candidate' | 'leader' | 'lost' | 'retired' = 'candidate';

  /** @throws {RangeError} with the option, the expected value and the actual value */
  constructor(deps: LeaderElectorDeps, options: LeaderElectorOptions) {
    this.#settings = electionSettings(options);
    const lock = new LeaseLock(deps.client, options);
    this.#lock = lock;
    this.#lockName = options.name;
    this.#lockKey = lock.key;
    this.#deps = deps;
    this.#log = deps.log.with({ lock: lock.key });
    const { clock, random, onLease } = deps;
    const onSlowPath = () => deps.metrics?.slowPath(options.name);
    const common = { clock, random, log: this.#log };
    this.#session = new LeaseSession({ ...common, lock, onSlowPath, onLease }, this.#settings);
    this.#candidate = new LeaseCandidate({ ...common, session: this.#session }, this.#settings);
  }

  /** The last observed holder of the lease; empty if none was observed. */
  get leader(): string {
    return this.#session.leader;
  }

  get isLeading(): boolean {
    return this.#role === 'leader';
  }

  /** Whether this process led and has lost the lease: `run` rejects or has rejected. */
  get hasLost(): boolean {
    return this.#role === 'lost';
  }

  /**
   * Returns true while no other process can hold the lease. A write fence asks this before each request. The
   * margin is the time between the renew deadline and the expiry of the lease.
   */
  mayWrite(): boolean {
    const { isHeld, deadlineMs } = this.#session;
    return this.#role === 'leader' && isHeld && this.#deps.clock.monotonic() < deadlineMs;
  }

  /** Returns true while this process leads, and after it has stopped leading without a loss of the lease. */
  mayWriteEvents(): boolean {
    return this.#role === 'retired' || this.mayWrite();
  }

  /** Resolves to true when this process leads, or to false if `signal` aborts first. */
  acquired(signal: AbortSignal): Promise<boolean> {
    return settledBeforeAbort(this.#acquired.promise, signal);
  }

  /**
   * Returns why this process should be restarted, or undefined if it is healthy. A process is unhealthy if it
   * leads, or led, and its lease expired long ago. Standbys are healthy.
   */
  health(): string | undefined {
    if (this.#role !== 'leader' && this.#role !== 'lost') return undefined;
    const { leaseDurationMs, healthToleranceMs } = this.#settings;
    const ageMs = this.#deps.clock.monotonic() - this.#session.renewedMs;
    return ageMs > leaseDurationMs + healthToleranceMs
      ? `failed election to renew leadership on lease ${this.#lockKey}`
      : undefined;
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#deps.metrics?.leading(this.#lockName, false);
    this.#log.info('Attempting to acquire leader lease...', { identity: this.#settings.identity });
    const abrupt = new AbortController();
    const onStop = () => {
      if (isAbruptStop(signal.reason)) abrupt.abort(signal.reason);
    };
    signal.addEventListener('abort', onStop, { once: true });
    try {
      await this.#runWatched(async () => {
        if (await this.#candidate.run(signal, abrupt.signal)) {
          await this.#lead(signal, abrupt.signal);
        }
      });
      this.#role = 'retired';
    } finally {
      signal.removeEventListener('abort', onStop);
      this.#deps.metrics?.leading(this.#lockName, false);
    }
    const { releaseOnCancel } = this.#settings;
    if (releaseOnCancel && this.#session.hasClaimed && !isAbruptStop(signal.reason)) {
      await this.#session.release();
    }
  }

  /** Watches the lease until `work` has ended. */
  async #runWatched(work: () => Promise<void>): Promise<void> {
    const { clock, random } = this.#deps;
    const over = new AbortController();
    await runAll(
      [
        () => work().finally(() => over.abort()),
        (end) => watchLease(this.#lock, this.#observe, { clock, random, log: this.#log }, end),
      ],
      over.signal,
    );
  }

  readonly #observe = (change: LeaseChange): void => {
    this.#session.observe(change);
    const holder = holderOf(this.#session.lease);
    if (this.#role === 'candidate') this.#candidate.observed(holder);
    else if (holder !== this.#settings.identity) this.#renewNow.abort();
  };

  /** @throws {AbruptStop} of the kind `leadershipLost` */
  async #lead(signal: AbortSignal, abrupt: AbortSignal): Promise<void> {
    this.#role = 'leader';
    this.#deps.metrics?.leading(this.#lockName, true);
    this.#log.info('Successfully acquired lease');
    this.#record('became leader');
    this.#acquired.resolve();
    await this.#keepRenewing(signal, abrupt);
    if (!isAbruptStop(signal.reason)) this.#record('stopped leading');
  }

  async #keepRenewing(end: AbortSignal, abrupt: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const { retryPeriodMs } = this.#settings;
    let lastError: unknown;
    for (;;) {
      const pauseMs = Math.min(retryPeriodMs, this.#session.deadlineMs - clock.monotonic());
      await clock.sleep(pauseMs, AbortSignal.any([end, this.#renewNow.signal]));
      if (end.aborted) return;
      this.#renewNow = new AbortController();
      const leftMs = this.#session.deadlineMs - clock.monotonic();
      // A timer may fire a moment early. A shorter attempt only times out, which hides why the last one failed.
      if (leftMs < SHORTEST_ATTEMPT_MS) throw this.#lost(lastError);
      const attempt = await this.#session.attempt({
        timeoutMs: leftMs,
        signal: end,
        abrupt,
        isLeading: true,
      });
      if (end.aborted) return;
      switch (attempt.kind) {
        case 'held':
          lastError = undefined;
          this.#log.v(5).info('Renewed the lease');
          break;
        case 'taken':
          throw this.#lost(undefined, attempt.holder);
        case 'failed':
          lastError = attempt.error;
          this.#log.info('Could not renew the lease; trying again', {
            err: lastError,
            renewedAgo: formatDuration(Math.round(clock.monotonic() - this.#session.renewedMs)),
          });
      }
    }
  }

  #lost(cause: unknown, holder?: string): AbruptStop {
    this.#role = 'lost';
    const { renewDeadlineMs } = this.#settings;
    const why =
      holder === undefined
        ? `it was not renewed within ${formatDuration(renewDeadlineMs)}`
        : holder === ''
          ? 'it was released by another process'
          : `${JSON.stringify(holder)} holds it`;
    const message = `leader election lost: lease ${this.#lockKey}: ${why}`;
    return new AbruptStop('leadershipLost', message, { cause });
  }

  #record(what: 'became leader' | 'stopped leading'): void {
    const { lease } = this.#session;
    if (!lease) return;
    this.#deps.recorder?.normal(
      { apiVersion: apiVersionOf(LEASES), kind: LEASES.kind, metadata: lease.metadata },
      'LeaderElection',
      `${this.#settings.identity} ${what}`,
    );
  }
}
