import type { Lease } from '../api/builtin.ts';
import { compareResourceVersions } from '../api/resource-version.ts';
import { retryOnConflict } from '../client/retry-on-conflict.ts';
import { withinTimeout } from '../util/within-timeout.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { formatDuration } from '../util/duration.ts';
import {
  claimedSpec,
  holderOf,
  isReleased,
  leaseState,
  observe,
  releasedSpec,
} from './lease-state.ts';
import type { LeaseSpec, ObservedLease } from './lease-state.ts';
import type { ElectionSettings } from './leader-elector-options.ts';
import type { LeaseChange, LeaseLock } from './lease-lock.ts';

/** Dependencies of `LeaseSession`. */
export interface LeaseSessionDeps {
  readonly lock: LeaseLock;
  readonly clock: Clock;
  /** Numbers in [0, 1). */
  readonly random: () => number;
  readonly log: Logger;
  /** Called when a renewal takes more than one update. */
  readonly onSlowPath: () => void;
  /** Called with the lease whenever it was read, watched or written. */
  readonly onLease?: ((lease: Lease) => void) | undefined;
}

/** Options of `Attempt`. */
export interface AttemptOptions {
  readonly timeoutMs: number;
  /** Aborts reads. A write in flight completes, because a release relies on its result. */
  readonly signal: AbortSignal;
  /** Aborts also writes. */
  readonly abrupt: AbortSignal;
  /** Whether this process leads. A leader does not acquire a free lease again: another process may have led meanwhile. */
  readonly isLeading: boolean;
}

/** Result of an attempt to acquire or renew the lease. */
export type Attempt =
  | { readonly kind: 'held' }
  | { readonly kind: 'taken'; readonly holder: string; readonly untilMs: number }
  | { readonly kind: 'failed'; readonly error: unknown };

/**
 * The relation of one process to one lease: the last observed state, how long this process may rely on
 * it, and the requests that acquire, renew and release it. The `LeaderElector` decides what follows.
 */
export class LeaseSession {
  readonly #deps: LeaseSessionDeps;
  readonly #settings: ElectionSettings;
  #seen: ObservedLease | undefined;
  /** The resourceVersion of the last observed state, or deletion; undefined if unknown. */
  #version: string | undefined;
  #isHeld = false;
  #leader = '';
  #renewedMs = 0;
  #hasClaimed = false;

  constructor(deps: LeaseSessionDeps, settings: ElectionSettings) {
    this.#deps = deps;
    this.#settings = settings;
  }

  /** The lease as it was last read, watched or written; undefined if it does not exist. */
  get lease(): Lease | undefined {
    return this.#seen?.lease;
  }

  /** The last acquisition or renewal succeeded, and no other state of the lease was observed since. */
  get isHeld(): boolean {
    return this.#isHeld;
  }

  /** The last observed holder; empty if none was observed. */
  get leader(): string {
    return this.#leader;
  }

  /** When the last successful acquisition or renewal was sent. */
  get renewedMs(): number {
    return this.#renewedMs;
  }

  /** End of the time in which this process may write, in monotonic milliseconds. The lease expires later. */
  get deadlineMs(): number {
    return this.#renewedMs + this.#settings.renewDeadlineMs;
  }

  /** An acquisition was sent; its result may be unknown. */
  get hasClaimed(): boolean {
    return this.#hasClaimed;
  }

  /**
   * Records a change of the lease from the watch. The holder renewed it earlier, so counting from now
   * makes the lease expire too late rather than too early. States that are not newer are ignored.
   */
  observe({ lease, isDeleted }: LeaseChange): void {
    const { resourceVersion } = lease.metadata;
    if (this.#version !== undefined && compareResourceVersions(resourceVersion, this.#version) <= 0)
      return;
    this.#version = resourceVersion;
    const before = this.#seen;
    const seen = observe(before, lease, this.#deps.clock.monotonic());
    // The last state shows the last renewal.
    this.#see(before, isDeleted ? { ...seen, lease: undefined } : seen);
  }

  /** Tries once to acquire or renew the lease. Never rejects, also not after the timeout. */
  async attempt({ timeoutMs, signal, abrupt, isLeading }: AttemptOptions): Promise<Attempt> {
    const { clock } = this.#deps;
    try {
      return await withinTimeout({ clock, timeoutMs, signal: abrupt }, async (limit) => {
        if (await this.#renewAtOnce(limit)) return { kind: 'held' };
        const read = await this.#read(AbortSignal.any([limit, signal]));
        signal.throwIfAborted();
        return this.#claimFrom(read, isLeading, limit);
      });
    } catch (error) {
      return { kind: 'failed', error };
    }
  }

  /** Renews the lease from its last observed state, without a read. This is the usual case. */
  async #renewAtOnce(signal: AbortSignal): Promise<boolean> {
    const { clock } = this.#deps;
    const seen = this.#seen;
    if (!seen?.lease || holderOf(seen.lease) !== this.#settings.identity) return false;
    if (seen.untilMs <= clock.monotonic()) return false;
    try {
      await this.#claim(seen.lease, signal);
      return true;
    } catch (error) {
      signal.throwIfAborted();
      this.#deps.onSlowPath();
      this.#deps.log
        .v(2)
        .info('Could not renew the lease by one update; reading it', { err: error });
      return false;
    }
  }

  async #claimFrom(
    lease: Lease | undefined,
    isLeading: boolean,
    signal: AbortSignal,
  ): Promise<Attempt> {
    const nowMs = this.#deps.clock.monotonic();
    const seen = observe(this.#seen, lease, nowMs);
    this.#see(this.#seen, seen);
    // The leader creates a deleted lease again at once: all other processes that have seen its claim wait.
    if (lease || !isLeading) {
      const verdict = leaseState(seen, this.#settings, nowMs);
      if (verdict.kind === 'taken') return verdict;
      if (verdict.kind === 'free' && isLeading) {
        // Another process may have led meanwhile, so this term has ended.
        return { kind: 'taken', holder: holderOf(lease), untilMs: nowMs };
      }
    }
    await this.#claim(lease, signal);
    return { kind: 'held' };
  }

  /** Reads the lease. Reads again if the watch was faster: the response may be older than what it showed. */
  async #read(signal: AbortSignal): Promise<Lease | undefined> {
    for (;;) {
      const before = this.#version;
      const lease = await this.#deps.lock.get(signal);
      const version = lease?.metadata.resourceVersion;
      if (this.#isSuperseded(version, before)) continue;
      this.#version = version;
      return lease;
    }
  }

  /**
   * Returns whether the watch has shown a newer state than a response with `version` (undefined: not found), since
   * the request was sent at `before`. A response alone counts also with a lower version: etcd may have been restored.
   */
  #isSuperseded(version: string | undefined, before: string | undefined): boolean {
    if (this.#version === undefined || this.#version === before) return false;
    return version === undefined || compareResourceVersions(version, this.#version) < 0;
  }

  /** Updates `lease`, or creates it, with this process as the holder. */
  async #claim(lease: Lease | undefined, signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const { identity, leaseDurationMs } = this.#settings;
    const durationSeconds = Math.ceil(leaseDurationMs / 1000);
    const claim = { identity, durationSeconds, nowMs: clock.now() };
    const sentMs = clock.monotonic();
    const before = this.#version;
    this.#hasClaimed = true;
    const stored = lease
      ? await this.#deps.lock.update(lease, claimedSpec(lease.spec ?? {}, claim), signal)
      : await this.#deps.lock.create(claimedSpec(undefined, claim), signal);
    const { resourceVersion } = stored.metadata;
    if (this.#isSuperseded(resourceVersion, before)) {
      throw new Error('the lease was changed again before the response arrived');
    }
    this.#version = resourceVersion;
    this.#renewedMs = sentMs;
    this.#isHeld = true;
    this.#see(this.#seen, { lease: stored, untilMs: sentMs + durationSeconds * 1000 });
  }

  /**
   * Releases the lease if it is ours: at once if its last state is known, otherwise after a read. Never rejects: a
   * lease that cannot be released expires.
   */
  async release(): Promise<void> {
    const { clock, random, lock, log } = this.#deps;
    try {
      await withinTimeout({ clock, timeoutMs: this.#settings.renewDeadlineMs }, async (signal) => {
        if (await this.#releaseAtOnce(signal)) return;
        const readAndUpdate = async () => this.#releaseFrom(await lock.get(signal), signal);
        await retryOnConflict(readAndUpdate, { signal, clock, random });
      });
    } catch (error) {
      log.error(error, 'Could not release the lease; it will expire');
    }
  }

  /** Releases the lease from its last observed state, without a read. */
  async #releaseAtOnce(signal: AbortSignal): Promise<boolean> {
    if (!this.#isHeld) return false;
    try {
      await this.#releaseFrom(this.lease, signal);
      return true;
    } catch (error) {
      signal.throwIfAborted();
      this.#deps.log
        .v(2)
        .info('Could not release the lease by one update; reading it', { err: error });
      return false;
    }
  }

  /** Updates `lease`, if it is ours, to be free. */
  async #releaseFrom(lease: Lease | undefined, signal: AbortSignal): Promise<void> {
    if (!lease || holderOf(lease) !== this.#settings.identity) return;
    const spec: LeaseSpec = releasedSpec(lease.spec ?? {}, this.#deps.clock.now());
    await this.#deps.lock.update(lease, spec, signal);
    this.#deps.log.info('Released lease');
  }

  /** Records and reports a state, and logs a new holder. Our own acquisition is logged by the elector. */
  #see(before: ObservedLease | undefined, seen: ObservedLease): void {
    const { clock, log, onLease } = this.#deps;
    const { lease, untilMs } = seen;
    const holder = holderOf(lease);
    this.#seen = seen;
    if (holder !== this.#settings.identity) this.#isHeld = false;
    if (lease) onLease?.(lease);
    if (holder !== '') {
      if (holder === this.#leader) return;
      this.#leader = holder;
      if (holder !== this.#settings.identity) log.info('New leader elected', { leader: holder });
    } else if (holderOf(before?.lease) !== '' && !isReleased(lease)) {
      log.info(lease ? 'Lease was emptied, not released' : 'Lease was deleted', {
        leader: this.#leader,
        expiresIn: formatDuration(Math.max(0, Math.round(untilMs - clock.monotonic()))),
      });
    }
  }
}
