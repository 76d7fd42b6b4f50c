import type { Lease } from '../api/builtin.ts';
import { objectKey } from '../api/object-key.ts';
import { holderOf } from '../leaderelection/lease-state.ts';
import { LeaderElector } from '../leaderelection/leader-elector.ts';
import type { LeaderElectorDeps } from '../leaderelection/leader-elector.ts';
import type { LeaderElectorOptions } from '../leaderelection/leader-elector-options.ts';
import { runAll } from '../util/runnable.ts';
import type { Runnable } from '../util/runnable.ts';
import { requesterOf } from './shard-request.ts';

/** Label on each Lease with the number of shards. */
const COUNT_LABEL = 'crd-controller.example.io/shards';

/** Dependencies of `Shard`. */
export interface ShardDeps extends Omit<LeaderElectorDeps, 'onLease'> {
  /** Whether this process hands over the shard, if it holds it and `requester` requests it. */
  readonly handsOverTo: (requester: string) => boolean;
  /** Called with the Lease whenever it was read or written. */
  readonly onLease: (lease: Lease) => void;
  /** Runs while this process holds the shard. Resolves after the signal has aborted and all work has ended. */
  readonly serve: (signal: AbortSignal) => Promise<void>;
}

/** Options of `Shard`. */
export interface ShardOptions extends Omit<LeaderElectorOptions, 'deferMs'> {
  /** Number of shards. */
  readonly count: number;
}

/** One shard in one process: waits for its Lease, serves it, and hands it over or releases it. */
export class Shard implements Runnable {
  readonly name: string;
  /** `namespace/name` of its Lease. */
  readonly at: { readonly namespace: string; readonly name: string };
  readonly #deps: ShardDeps;
  readonly #options: ShardOptions;
  #elector: LeaderElector;
  #holder = '';
  #handingOver = new AbortController();

  constructor(deps: ShardDeps, options: ShardOptions) {
    const { namespace, name } = options;
    this.name = objectKey(namespace, name);
    this.at = { namespace, name };
    this.#deps = deps;
    this.#options = options;
    this.#elector = this.#candidate();
  }

  /** The known holder, or the replica that it is handed over to; empty if none. */
  get holder(): string {
    return this.#holder;
  }

  get isHeld(): boolean {
    return this.#elector.isLeading;
  }

  /** The shard was lost: another process may act on it. */
  get isUnsafe(): boolean {
    return this.#elector.hasLost || (this.#elector.isLeading && !this.#elector.mayWrite());
  }

  health(): string | undefined {
    return this.#elector.health();
  }

  /** Acquires and serves the shard repeatedly until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#term(signal);
      this.#elector = this.#candidate();
    }
  }

  /** Runs one term: from the first read of the Lease until it has been released. */
  #term(signal: AbortSignal): Promise<void> {
    const elector = this.#elector;
    const handingOver = (this.#handingOver = new AbortController());
    const release = new AbortController();
    return runAll(
      [
        () => elector.run(release.signal),
        async (end) => {
          const leaving = AbortSignal.any([end, handingOver.signal]);
          try {
            if (await elector.acquired(end)) await this.#deps.serve(leaving);
          } finally {
            release.abort(leaving.reason);
          }
        },
      ],
      signal,
    );
  }

  #candidate(): LeaderElector {
    const { count, labels, ...terms } = this.#options;
    return new LeaderElector(
      { ...this.#deps, onLease: (lease) => this.#observe(lease) },
      {
        ...terms,
        labels: { ...labels, [COUNT_LABEL]: String(count) },
        deferMs: (lease) => this.#deferMs(lease),
      },
    );
  }

  /** Returns how long a free Lease is left to other replicas, in milliseconds. */
  #deferMs(lease: Lease): number {
    const { identity, count, leaseDurationMs = 15_000, retryPeriodMs = 2000 } = this.#options;
    // A live replica with that number of shards acquires it within this time.
    if (shardCountOf(lease) !== count) return leaseDurationMs;
    if (holderOf(lease) !== '') return 0;
    // Twice the period, because the requester may just have polled.
    return [undefined, identity].includes(requesterOf(lease)) ? 0 : 2 * retryPeriodMs;
  }

  #observe(lease: Lease): void {
    this.#deps.onLease(lease);
    if (this.#handingOver.signal.aborted) return;
    const { identity } = this.#options;
    this.#holder = holderOf(lease);
    if (this.#holder !== identity || !this.#elector.isLeading) return;
    const requester = requesterOf(lease);
    if (requester === undefined || !this.#deps.handsOverTo(requester)) return;
    this.#deps.log.info('Handing over shard', { lock: this.name, to: requester });
    this.#holder = requester;
    this.#handingOver.abort(new Error(`The shard is handed over to ${requester}`));
  }
}

/** Returns the number of shards on the Lease, or undefined if it has none. */
export function shardCountOf({ metadata: { labels = {} } }: Lease): number | undefined {
  return Object.hasOwn(labels, COUNT_LABEL) ? Number(labels[COUNT_LABEL]) : undefined;
}
