import type { Lease } from '../api/builtin.ts';
import { objectKey } from '../api/object-key.ts';
import { holderOf } from '../leaderelection/election.ts';
import { LeaderElector } from '../leaderelection/leader-elector.ts';
import type { LeaderElectorDeps } from '../leaderelection/leader-elector.ts';
import type { LeaderElectorOptions } from '../leaderelection/leader-elector-options.ts';
import { runAll } from '../util/run-all.ts';
import type { Runnable } from '../util/runnable.ts';
import { askedBy } from './wish.ts';

/** Says on each Lease how many shards there are. */
const COUNT_LABEL = 'crd-controller.example.io/shards';

/** What a shard asks of those around it. */
export interface ShardDeps extends Omit<LeaderElectorDeps, 'onLease'> {
  /** Whether this process lets go of the shard, if it holds it and `seeker` asks for it. */
  readonly partsWith: (seeker: string) => boolean;
  /** Told of the Lease whenever it was read or written. */
  readonly onLease: (lease: Lease) => void;
  /** Done while this process holds the shard; resolves after the signal has aborted and it is over. */
  readonly serve: (signal: AbortSignal) => Promise<void>;
}

export interface ShardOptions extends Omit<LeaderElectorOptions, 'deferMs'> {
  /** How many there are. */
  readonly count: number;
}

/** How one process stands to one shard: it waits for its Lease, serves it, and gives it back. */
export class Shard implements Runnable {
  readonly name: string;
  /** `namespace/name` of its Lease. */
  readonly at: { readonly namespace: string; readonly name: string };
  readonly #deps: ShardDeps;
  readonly #options: ShardOptions;
  #elector: LeaderElector;
  #holder = '';
  #parting = new AbortController();

  constructor(deps: ShardDeps, options: ShardOptions) {
    const { namespace, name } = options;
    this.name = objectKey(namespace, name);
    this.at = { namespace, name };
    this.#deps = deps;
    this.#options = options;
    this.#elector = this.#candidate();
  }

  /** Who holds it, as far as is known, or is about to be given it; empty: nobody. */
  get holder(): string {
    return this.#holder;
  }

  get isHeld(): boolean {
    return this.#elector.isLeading;
  }

  /** This process may not act on it: somebody else may, or it has been lost. */
  get isUnsafe(): boolean {
    return this.#elector.hasLost || (this.#elector.isLeading && !this.#elector.mayWrite());
  }

  health(): string | undefined {
    return this.#elector.health();
  }

  /** Holds the shard, or waits for it, again and again. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#term(signal);
      this.#elector = this.#candidate();
    }
  }

  /** From the first look at the Lease until it has been given back. */
  #term(signal: AbortSignal): Promise<void> {
    const elector = this.#elector;
    const parting = (this.#parting = new AbortController());
    const release = new AbortController();
    return runAll(
      [
        () => elector.run(release.signal),
        async (end) => {
          const leaving = AbortSignal.any([end, parting.signal]);
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
      { ...this.#deps, onLease: (lease) => this.#look(lease) },
      {
        ...terms,
        labels: { ...labels, [COUNT_LABEL]: String(count) },
        deferMs: (lease) => this.#deferMs(lease),
      },
    );
  }

  /** How long the Lease, if it is free, is left to others. */
  #deferMs(lease: Lease): number {
    const { identity, count, leaseDurationMs = 15_000, retryPeriodMs = 2000 } = this.#options;
    // Whoever counts so and is alive takes it within that time.
    if (countOn(lease) !== count) return leaseDurationMs;
    if (holderOf(lease) !== '') return 0;
    // Twice, as who asks may just have looked.
    return [undefined, identity].includes(askedBy(lease)) ? 0 : 2 * retryPeriodMs;
  }

  #look(lease: Lease): void {
    this.#deps.onLease(lease);
    if (this.#parting.signal.aborted) return;
    const { identity } = this.#options;
    this.#holder = holderOf(lease);
    if (this.#holder !== identity || !this.#elector.isLeading) return;
    const seeker = askedBy(lease);
    if (seeker === undefined || !this.#deps.partsWith(seeker)) return;
    this.#deps.log.info('Giving a shard to another', { lock: this.name, to: seeker });
    this.#holder = seeker;
    this.#parting.abort(new Error(`${seeker} is to have the shard`));
  }
}

/** How many shards there are by what `lease` says; undefined: it does not say. */
export function countOn({ metadata: { labels = {} } }: Lease): number | undefined {
  return Object.hasOwn(labels, COUNT_LABEL) ? Number(labels[COUNT_LABEL]) : undefined;
}
