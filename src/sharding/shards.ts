import { isApiError } from '../api/api-error.ts';
import { LEASES } from '../api/builtin.ts';
import type { Lease } from '../api/builtin.ts';
import type { LeaderElectorDeps } from '../leaderelection/leader-elector.ts';
import { jittered } from '../util/backoff.ts';
import { Deferred } from '../util/deferred.ts';
import { runAll } from '../util/run-all.ts';
import type { Runnable } from '../util/runnable.ts';
import { settledBefore } from '../util/settled-before.ts';
import { mayPart, shardToAskFor } from './balance.ts';
import { shardOf } from './shard-of.ts';
import { countOn, Shard } from './shard.ts';
import type { ShardOptions } from './shard.ts';
import { askedBy, asking } from './wish.ts';

/**
 * What is done for a shard while this process holds it. Resolves after `signal` has aborted and
 * nothing is done for the shard any more: only then may another have it.
 */
export type ServeShard = (shard: number, signal: AbortSignal) => Promise<void>;

/**
 * A share of the work: of `count` shards, those whose Leases this process holds. Each has a Lease of
 * its own, `NAME-0` and so on, and an election like that of a leader.
 *
 * **Every shard has a holder** as long as there is a process: whoever is there takes what is free, if
 * need be all of them. A process that holds two fewer than another asks it for one, by an annotation
 * on the Lease; the other finishes what it does for that shard, gives the Lease back, and leaves it to
 * who asked. So in the end no two differ by more than one.
 *
 * **All count alike.** Processes that are told another `count` wait until nobody counts as before: the
 * number is on the Leases. So it can be changed while they run, at the price of a pause.
 *
 * **No shard has two.** It is served only while its Lease is held. If one Lease is lost, not given
 * back, the process has lost them all: `mayWrite` is false from that moment on, and `run` rejects with
 * a `LeadershipLostError`.
 */
export class Shards implements Runnable {
  readonly name = 'shards';
  readonly count: number;
  readonly #deps: LeaderElectorDeps;
  readonly #options: ShardOptions;
  readonly #shards: readonly Shard[];
  readonly #servants: ServeShard[] = [];
  readonly #first = new Deferred();
  /** The first shard's Lease counts the shards as this process does: nobody does otherwise. */
  readonly #agreed = new Deferred();
  #disagreement: number | undefined;

  /** @throws {RangeError} naming the option that is wrong, what is expected of it, and its value */
  constructor(deps: LeaderElectorDeps, options: ShardOptions) {
    const { count, name } = options;
    if (!(Number.isInteger(count) && count > 0)) {
      throw new RangeError(`count must be a positive integer: got ${count}`);
    }
    this.count = count;
    this.#deps = deps;
    this.#options = options;
    this.#shards = Array.from({ length: count }, (_, shard) => {
      const serve = (signal: AbortSignal) => this.#serve(shard, signal);
      const partsWith = (seeker: string) => mayPart(this.#holders, options.identity, seeker);
      const onLease = (lease: Lease) => {
        if (shard === 0) this.#compare(lease);
        deps.onLease?.(lease);
      };
      return new Shard(
        { ...deps, serve, partsWith, onLease },
        { ...options, name: `${name}-${shard}` },
      );
    });
  }

  /** The shard that a key belongs to: in every process the same. */
  shardOf(key: string): number {
    return shardOf(key, this.count);
  }

  /** Whether this process holds that shard now. */
  holds(key: string): boolean {
    return this.#shards[this.shardOf(key)]?.isHeld ?? false;
  }

  /** Has `serve` called for every shard that comes to be held. To be called before `run`. */
  servedBy(serve: ServeShard): void {
    this.#servants.push(serve);
  }

  /** True while no other process can hold what this one does, by this moment's clock. */
  mayWrite(): boolean {
    return (
      this.#shards.some(({ isHeld }) => isHeld) && !this.#shards.some(({ isUnsafe }) => isUnsafe)
    );
  }

  /** Resolves to true once a shard is held, to false if `signal` aborts before. */
  acquired(signal: AbortSignal): Promise<boolean> {
    return settledBefore(this.#first, signal);
  }

  /** Why this process should be ended by force, if it should. */
  health(): string | undefined {
    return this.#shards.map((shard) => shard.health()).find((trouble) => trouble !== undefined);
  }

  run(signal: AbortSignal): Promise<void> {
    const lives = this.#shards.map((shard, i) => async (end: AbortSignal) => {
      if (i === 0 || (await settledBefore(this.#agreed, end))) await shard.run(end);
    });
    return runAll([...lives, (end) => this.#seekBalance(end)], signal);
  }

  #compare(lease: Lease): void {
    const { count, log } = { count: this.count, log: this.#deps.log };
    const theirs = countOn(lease);
    if (theirs === count) this.#agreed.resolve();
    else if (theirs !== this.#disagreement) {
      log.info(
        'Others split the work into another number of shards; waiting until they have ended',
        {
          theirs,
          ours: count,
        },
      );
    }
    this.#disagreement = theirs;
  }

  get #holders(): string[] {
    return this.#shards.map(({ holder }) => holder);
  }

  #serve(shard: number, signal: AbortSignal): Promise<void> {
    this.#first.resolve();
    return runAll(
      this.#servants.map((serve) => (end) => serve(shard, end)),
      signal,
    );
  }

  /** Asks for one shard at a time: what a wish led to is seen by the next look at the Leases. */
  async #seekBalance(signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#deps;
    const { retryPeriodMs = 2000, jitter = 1.2, identity } = this.#options;
    while (!signal.aborted) {
      // Longer than it takes all to see what the last wish has led to.
      await clock.sleep(jittered(2 * retryPeriodMs, jitter, random), signal);
      const wanted = shardToAskFor(this.#holders, identity, random());
      if (wanted === undefined || signal.aborted) continue;
      const shard = this.#shards[wanted];
      if (shard) await this.#askFor(shard, signal);
    }
  }

  async #askFor({ at, name }: Shard, signal: AbortSignal): Promise<void> {
    const { client, log } = this.#deps;
    const { identity } = this.#options;
    try {
      const lease = await client.get(LEASES, at, { signal });
      if (askedBy(lease) !== undefined) return;
      await client.update(LEASES, asking(lease, identity), { signal });
      log.info('Asked for a shard of another', { lock: name, from: lease.spec?.holderIdentity });
    } catch (error) {
      if (signal.aborted) return;
      // Its holder has renewed it meanwhile, or it is gone: what is still true is asked again.
      const isRace = isApiError(error, 'conflict', 'notFound');
      if (!isRace) log.error(error, 'Could not ask for a shard; trying again', { lock: name });
    }
  }
}
