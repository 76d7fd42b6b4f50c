import type { Lease } from '../api/builtin.ts';
import { compareResourceVersions } from '../api/resource-version.ts';
import { retryOnConflict } from '../client/retry-on-conflict.ts';
import { withinTimeout } from '../client/within-timeout.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { claimed, expiry, holderOf, judge, released, sight } from './election.ts';
import type { LeaseSpec, Sighting } from './election.ts';
import type { ElectionTerms } from './leader-elector-options.ts';
import type { LeaseLock } from './lease-lock.ts';

export interface LeaseTenureDeps {
  readonly lock: LeaseLock;
  readonly clock: Clock;
  /** Numbers in [0, 1). */
  readonly random: () => number;
  readonly log: Logger;
  /** Called when a renewal takes more than one update. */
  readonly onSlowPath: () => void;
  /** Told of the lease whenever it was read, heard of or written. */
  readonly onLease?: ((lease: Lease) => void) | undefined;
}

export interface AttemptOptions {
  readonly timeoutMs: number;
  /** The lease is ours: one that is free was somebody else's meanwhile, and is not taken again. */
  readonly isLeading: boolean;
}

/** How an attempt to hold the lease ended. */
export type Attempt =
  | { readonly kind: 'held' }
  | { readonly kind: 'taken'; readonly holder: string; readonly untilMs: number }
  | { readonly kind: 'failed'; readonly error: unknown };

/**
 * How one process stands to one lease: what it has seen of it, how long it may rely on it, and the
 * requests by which it claims, renews and releases it. What follows from that is the elector's.
 */
export class LeaseTenure {
  readonly #deps: LeaseTenureDeps;
  readonly #terms: ElectionTerms;
  #sighting: Sighting | undefined;
  #leader = '';
  #renewedMs = 0;
  #hasClaimed = false;

  constructor(deps: LeaseTenureDeps, terms: ElectionTerms) {
    this.#deps = deps;
    this.#terms = terms;
  }

  /** The lease as it was last read, heard of or written. */
  get lease(): Lease | undefined {
    return this.#sighting?.lease;
  }

  /** Whoever held it then; empty: nobody was seen to. */
  get leader(): string {
    return this.#leader;
  }

  /** When the last claim was sent that succeeded. */
  get renewedMs(): number {
    return this.#renewedMs;
  }

  /** Until when that is good for: the lease itself lasts longer. */
  get deadlineMs(): number {
    return this.#renewedMs + this.#terms.renewDeadlineMs;
  }

  /** A claim was sent; whether it succeeded may be unknown. */
  get hasClaimed(): boolean {
    return this.#hasClaimed;
  }

  /**
   * Takes note of a state of the lease that was heard of. The holder has renewed it at some time
   * before, so what counts from now counts too long rather than too short. One that is not newer than
   * what was seen is no news.
   */
  heard(lease: Lease): void {
    const seen = this.#sighting?.lease.metadata.resourceVersion;
    const { resourceVersion } = lease.metadata;
    if (seen !== undefined && compareResourceVersions(resourceVersion, seen) <= 0) return;
    this.#sighting = sight(this.#sighting, lease, this.#deps.clock.monotonic());
    this.#tell(lease);
  }

  /** One attempt to hold the lease. Rejects never, also when it takes too long. */
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

  /** Writes the lease as it was last seen, without reading it: all it takes as long as all is well. */
  async #renewAtOnce(signal: AbortSignal): Promise<boolean> {
    const { clock } = this.#deps;
    const seen = this.#sighting;
    if (!seen || holderOf(seen.lease) !== this.#terms.identity) return false;
    if (expiry(seen) <= clock.monotonic()) return false;
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
      this.#sighting = sight(this.#sighting, lease, nowMs);
      this.#tell(lease);
      const verdict = judge(this.#sighting, this.#terms, nowMs);
      if (verdict.kind === 'taken') return verdict;
      if (verdict.kind === 'free' && isLeading) {
        // Others may have led meanwhile: what was true when this term began need not be any more.
        return { kind: 'taken', holder: holderOf(lease), untilMs: nowMs };
      }
    }
    await this.#claim(lease, signal);
    return { kind: 'held' };
  }

  /** Makes the lease ours, from `lease` or from nothing. */
  async #claim(lease: Lease | undefined, signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const { identity, leaseDurationMs } = this.#terms;
    const durationSeconds = Math.ceil(leaseDurationMs / 1000);
    const claim = { identity, durationSeconds, nowMs: clock.now() };
    const sentMs = clock.monotonic();
    this.#hasClaimed = true;
    const stored = lease
      ? await this.#deps.lock.update(lease, claimed(lease.spec ?? {}, claim), signal)
      : await this.#deps.lock.create(claimed(undefined, claim), signal);
    this.#sighting = { lease: stored, sinceMs: sentMs };
    this.#renewedMs = sentMs;
    this.#tell(stored);
  }

  /**
   * Gives the lease back, if it is ours by what the server says. Rejects never: what cannot be given
   * back expires.
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
            const spec: LeaseSpec = released(lease.spec ?? {}, clock.now());
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

  /** Also one line for each change of the holder; our own acquisition has its own. */
  #tell(lease: Lease): void {
    this.#deps.onLease?.(lease);
    const holder = holderOf(lease);
    if (holder === '' || holder === this.#leader) return;
    this.#leader = holder;
    if (holder !== this.#terms.identity)
      this.#deps.log.info('New leader elected', { leader: holder });
  }
}
