import type { ObjectKey } from '../api/object-key.ts';
import { Deferred } from '../util/deferred.ts';

/**
 * Keys that this process syncs: the keys of its open shards. While a shard is being closed, running
 * syncs continue and new ones are rejected.
 */
export class KeyOwnership {
  readonly #shardOf: (key: ObjectKey) => number;
  /** Open shards, and shards that are being closed. */
  readonly #shards = new Map<number, OpenShard>();

  constructor(shardOf: (key: ObjectKey) => number) {
    this.#shardOf = shardOf;
  }

  owns(key: ObjectKey): boolean {
    return this.#shards.get(this.#shardOf(key))?.isClosing === false;
  }

  /** Starts a sync of `key`. Returns a function that ends it, or undefined if the key is not owned. */
  enter(key: ObjectKey): (() => void) | undefined {
    const shard = this.#shards.get(this.#shardOf(key));
    if (!shard || shard.isClosing) return undefined;
    shard.syncs++;
    return () => {
      shard.syncs--;
      if (shard.isClosing && shard.syncs === 0) shard.idle.resolve();
    };
  }

  open(shard: number): void {
    this.#shards.set(shard, { syncs: 0, idle: new Deferred(), isClosing: false });
  }

  /** Closes a shard. Resolves when none of its keys is being synced. */
  async close(shard: number): Promise<void> {
    const closing = this.#shards.get(shard);
    if (!closing) return;
    closing.isClosing = true;
    if (closing.syncs > 0) await closing.idle.promise;
    this.#shards.delete(shard);
  }
}

interface OpenShard {
  /** Number of running syncs. */
  syncs: number;
  readonly idle: Deferred;
  isClosing: boolean;
}
