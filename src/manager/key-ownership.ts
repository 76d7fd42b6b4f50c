import type { ObjectKey } from '../api/object-key.ts';
import { Deferred } from '../util/deferred.ts';

/**
 * Which keys this process acts on: those of the shards that are open. One that is being closed keeps
 * its runs in flight, and gets no more.
 */
export class KeyOwnership {
  readonly #shardOf: (key: ObjectKey) => number;
  /** Open and closing ones. */
  readonly #shards = new Map<number, OpenShard>();

  constructor(shardOf: (key: ObjectKey) => number) {
    this.#shardOf = shardOf;
  }

  owns(key: ObjectKey): boolean {
    return this.#shards.get(this.#shardOf(key))?.isClosing === false;
  }

  /** Begins a run of `key`, and returns what ends it; undefined if the key is not to run here. */
  enter(key: ObjectKey): (() => void) | undefined {
    const shard = this.#shards.get(this.#shardOf(key));
    if (!shard || shard.isClosing) return undefined;
    shard.runs++;
    return () => {
      shard.runs--;
      if (shard.isClosing && shard.runs === 0) shard.idle.resolve();
    };
  }

  open(shard: number): void {
    this.#shards.set(shard, { runs: 0, idle: new Deferred(), isClosing: false });
  }

  /** Resolves when no key of `shard` runs any more. */
  async close(shard: number): Promise<void> {
    const closing = this.#shards.get(shard);
    if (!closing) return;
    closing.isClosing = true;
    if (closing.runs > 0) await closing.idle.promise;
    this.#shards.delete(shard);
  }
}

interface OpenShard {
  /** In flight. */
  runs: number;
  readonly idle: Deferred;
  isClosing: boolean;
}
