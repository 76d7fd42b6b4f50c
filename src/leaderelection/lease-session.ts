import type { Lease } from '../api/builtin.ts';
import { compareResourceVersions } from '../api/resource-version.ts';
import { retryOnConflict } from '../client/retry-on-conflict.ts';
import { withinTimeout } from '../util/within-timeout.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import {
  claimedSpec,
  expiresAtMs,
  holderOf,
  leaseState,
  observe,
  releasedSpec,
} from './lease-state.ts';
import type { LeaseSpec, ObservedLease } from './lease-state.ts';
import type { ElectionTerms } from './leader-elector-options.ts';
import type { LeaseLock } from './lease-lock.ts';

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
  readonly #terms: ElectionTerms;
  #seen: ObservedLease | undefined;
  #leader = '';
  #renewedMs = 0;
  #hasClaimed = false;

  constructor(deps: LeaseSessionDeps, terms: ElectionTerms) {
    this.#deps = deps;
    this.#terms = terms;
  }

  /** The lease as it was last read, watched or written. */
  get lease(): Lease | undefined {
    return this.#seen?.lease;
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
    return this.#renewedMs + this.#terms.renewDeadlineMs;
  }

  /** An acquisition was sent; its result may be unknown. */
  get hasClaimed(): boolean {
    return this.#hasClaimed;
  }

  /**
   * Records a state of the lease from the watch. The holder renewed it earlier, so counting from now
   * makes the lease expire too late rather than too early. States that are not newer are ignored.
   */
  observe(lease: Lease): void {
    const seen = this.#seen?.lease.metadata.resourceVersion;
    const { resourceVersion } = lease.metadata;
    if (seen !== undefined && compareResourceVersions(resourceVersion, seen) <= 0) return;
    this.#seen = observe(this.#seen, lease, this.#deps.clock.monotonic());
    this.#observed(lease);
  }

  /** Tries once to acquire or renew the lease. Never rejects, also not after the timeout. */
  async attempt({ timeoutMs, isLeading }: AttemptOptions, signal: AbortSignal): Promise<Attempt> {
    const { clock } = this.#deps;
    try {
      return await withinTimeout({ clock, timeoutMs, signal }, async (limit) =>
        (await this.#renewAtOnce(limit)) ? { kind: 'held' } : this.#readAndClaim(isLeading, limit),
      );
    } catch (error) {
      return { kind: 'failed', error };
    }
  }

  /** Renews the lease from its last observed state, without a read. This is the usual case. */
  async #renewAtOnce(signal: AbortSignal): Promise<boolean> {
    const { clock } = this.#deps;
    const seen = this.#seen;
    if (!seen || holderOf(seen.lease) !== this.#terms.identity) return false;
    if (expiresAtMs(seen) <= clock.monotonic()) return false;
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

  async #readAndClaim(isLeading: boolean, signal: AbortSignal): Promise<Attempt> {
    const { clock } = this.#deps;
    const lease = await this.#deps.lock.get(signal);
    if (lease) {
      const nowMs = clock.monotonic();
      this.#seen = observe(this.#seen, lease, nowMs);
      this.#observed(lease);
      const verdict = leaseState(this.#seen, this.#terms, nowMs);
      if (verdict.kind === 'taken') return verdict;
      if (verdict.kind === 'free' && isLeading) {
        // Another process may have led meanwhile, so this term has ended.
        return { kind: 'taken', holder: holderOf(lease), untilMs: nowMs };
      }
    }
    await this.#claim(lease, signal);
    return { kind: 'held' };
  }

  /** Updates `lease`, or creates it, with this process as the holder. */
  async #claim(lease: Lease | undefined, signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const { identity, leaseDurationMs } = this.#terms;
    const durationSeconds = Math.ceil(leaseDurationMs / 1000);
    const claim = { identity, durationSeconds, nowMs: clock.now() };
    const sentMs = clock.monotonic();
    this.#hasClaimed = true;
    const stored = lease
      ? await this.#deps.lock.update(lease, claimedSpec(lease.spec ?? {}, claim), signal)
      : await this.#deps.lock.create(claimedSpec(undefined, claim), signal);
    this.#seen = { lease: stored, sinceMs: sentMs };
    this.#renewedMs = sentMs;
    this.#observed(stored);
  }

  /**
   * Releases the lease if the server says that it is ours. Never rejects: a lease that cannot be
   * released expires.
   */
  async release(): Promise<void> {
    const { clock, random } = this.#deps;
    const { identity, renewDeadlineMs } = this.#terms;
    try {
      await withinTimeout({ clock, timeoutMs: renewDeadlineMs }, (signal) =>
        retryOnConflict(
          async () => {
            const lease = await this.#deps.lock.get(signal);
            if (!lease || holderOf(lease) !== identity) return;
            const spec: LeaseSpec = releasedSpec(lease.spec ?? {}, clock.now());
            await this.#deps.lock.update(lease, spec, signal);
            this.#deps.log.info('Released lease');
          },
          { signal, clock, random },
        ),
      );
    } catch (error) {
      this.#deps.log.error(error, 'Could not release the lease; it will expire');
    }
  }

  /** Reports the lease and logs a new holder. Our own acquisition is logged by the elector. */
  #observed(lease: Lease): void {
    this.#deps.onLease?.(lease);
    const holder = holderOf(lease);
    if (holder === '' || holder === this.#leader) return;
    this.#leader = holder;
    if (holder !== this.#terms.identity)
      this.#deps.log.info('New leader elected', { leader: holder });
  }
}
