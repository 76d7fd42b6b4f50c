import { isApiError } from '../api/api-error.ts';
import { LEASES } from '../api/builtin.ts';
import type { Lease } from '../api/builtin.ts';
import type { LeaderElectorDeps } from '../leaderelection/leader-elector.ts';
import { fieldManagerOf } from '../leaderelection/lease-lock.ts';
import { withJitter } from '../util/backoff.ts';
import { Deferred } from '../util/deferred.ts';
import { runAll } from '../util/runnable.ts';
import type { Runnable } from '../util/runnable.ts';
import { settledBeforeAbort, untilAborted } from '../util/abort.ts';
import { mayHandOver, shardOf, shardToRequest } from './assignment.ts';
import { shardCountOf, Shard } from './shard.ts';
import type { ShardOptions } from './shard.ts';
import { requesterOf, withRequest } from './shard-request.ts';

/**
 * Called for each shard that this process acquires. Must resolve after `signal` has aborted and all work of
 * the shard has ended: the shard is then released to other replicas.
 */
export type ShardHandler = (shard: number, signal: AbortSignal) => Promise<void>;

/**
 * The shards that this process holds, of `count` shards. Each shard has a Lease (`NAME-0` and so on) with
 * leader election.
 *
 * **Every shard has a holder** while a process runs: a process acquires every free shard. A process that
 * holds two shards fewer than another requests one by an annotation on its Lease. The holder finishes
 * its work for that shard, releases the Lease and leaves it to the requester. In the end the numbers
 * of shards differ by at most one.
 *
 * **All processes use the same number of shards.** The number is on the Leases. Processes with another `count`
 * wait until no process renews with the old number. The number can be changed by a rollout, with a pause.
 *
 * **No shard has two holders.** A shard is served only while its Lease is held. If one Lease is lost, the
 * process has lost all shards: `mayWrite` is false from that moment, and `run` rejects with an
 * `AbruptStop` of the kind `leadershipLost`.
 */
export class Shards implements Runnable {
  readonly name = 'shards';
  readonly count: number;
  readonly #deps: LeaderElectorDeps;
  readonly #options: ShardOptions;
  readonly #shards: readonly Shard[];
  readonly #handlers: ShardHandler[] = [];
  readonly #first = new Deferred();
  /** Resolves when the Lease of shard 0 has the same number of shards as this process. */
  readonly #agreed = new Deferred();
  #disagreement: number | undefined;
  #hasServed = false;

  /** @throws {RangeError} with the option, the expected value and the actual value */
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
      const handsOverTo = (requester: string) =>
        mayHandOver(this.#holders, options.identity, requester);
      const onLease = (lease: Lease) => {
        if (shard === 0) this.#compare(lease);
        deps.onLease?.(lease);
      };
      return new Shard(
        { ...deps, serve, handsOverTo, onLease },
        { ...options, name: `${name}-${shard}` },
      );
    });
  }

  /** Returns the shard of a key: the same in every process. */
  shardOf(key: string): number {
    return shardOf(key, this.count);
  }

  /** Returns whether this process holds the shard of `key` now. */
  holds(key: string): boolean {
    return this.#shards[this.shardOf(key)]?.isHeld ?? false;
  }

  /** Registers a handler that is called for every acquired shard. Call it before `run`. */
  onShard(serve: ShardHandler): void {
    this.#handlers.push(serve);
  }

  /** Returns true while no other process can hold a shard of this one. */
  mayWrite(): boolean {
    return (
      this.#shards.some(({ isHeld }) => isHeld) && !this.#shards.some(({ isUnsafe }) => isUnsafe)
    );
  }

  /** Returns true from the first shard that this process holds, unless it has lost one. */
  mayWriteEvents(): boolean {
    return this.mayWrite() || (this.#hasServed && !this.#shards.some(({ isUnsafe }) => isUnsafe));
  }

  /** Resolves to true when a shard is held, or to false if `signal` aborts first. */
  acquired(signal: AbortSignal): Promise<boolean> {
    return settledBeforeAbort(this.#first.promise, signal);
  }

  /** Returns why this process should be restarted, or undefined if it is healthy. */
  health(): string | undefined {
    return this.#shards.map((shard) => shard.health()).find((reason) => reason !== undefined);
  }

  run(signal: AbortSignal): Promise<void> {
    const runs = this.#shards.map((shard, i) => async (end: AbortSignal) => {
      if (i === 0 || (await settledBeforeAbort(this.#agreed.promise, end))) await shard.run(end);
    });
    return runAll([...runs, (end) => this.#rebalance(end)], signal);
  }

  #compare(lease: Lease): void {
    const { count, log } = { count: this.count, log: this.#deps.log };
    const other = shardCountOf(lease);
    if (other === count) this.#agreed.resolve();
    else if (other !== this.#disagreement) {
      log.info('Other replicas use another number of shards; waiting until they have stopped', {
        shards: count,
        otherShards: other,
      });
    }
    this.#disagreement = other;
  }

  get #holders(): string[] {
    return this.#shards.map(({ holder }) => holder);
  }

  #serve(shard: number, signal: AbortSignal): Promise<void> {
    this.#hasServed = true;
    this.#first.resolve();
    // A shard is held until the signal aborts, also without a handler.
    return runAll(
      [untilAborted, ...this.#handlers.map((serve) => (end: AbortSignal) => serve(shard, end))],
      signal,
    );
  }

  /** Requests one shard at a time. The result is visible at the next comparison. */
  async #rebalance(signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#deps;
    const { retryPeriodMs = 2000, jitter = 1.2, identity } = this.#options;
    while (!signal.aborted) {
      // Longer than other replicas need to observe the result of the last request.
      await clock.sleep(withJitter(2 * retryPeriodMs, jitter, random), signal);
      const wanted = shardToRequest(this.#holders, identity, random());
      if (wanted === undefined || signal.aborted) continue;
      const shard = this.#shards[wanted];
      if (shard) await this.#request(shard, signal);
    }
  }

  async #request({ at, name }: Shard, signal: AbortSignal): Promise<void> {
    const { client, log } = this.#deps;
    const { identity } = this.#options;
    try {
      const lease = await client.get(LEASES, at, { signal });
      if (requesterOf(lease) !== undefined) return;
      const options = { fieldManager: fieldManagerOf(at.name), signal };
      await client.update(LEASES, withRequest(lease, identity), options);
      log.info('Requested shard', { lock: name, from: lease.spec?.holderIdentity });
    } catch (error) {
      if (signal.aborted) return;
      // The Lease was renewed or deleted meanwhile: the request is repeated if it is still needed.
      const isRace = isApiError(error, 'conflict', 'notFound');
      if (!isRace) log.error(error, 'Could not request a shard; trying again', { lock: name });
    }
  }
}
