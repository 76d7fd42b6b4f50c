import type { ObjectKey } from '../api/object-key.ts';
import { Deferred } from '../util/deferred.ts';
import type { SharedInformer } from '../cache/shared-informer.ts';
import type { ShardHandler } from '../sharding/shards.ts';
import { untilAborted } from '../util/abort.ts';
import { waitUntilCurrent } from './sync-barrier.ts';
import type { SyncBarrierDeps } from './sync-barrier.ts';

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

/** Distribution of keys over replicas; implemented by `Shards`. */
export interface Sharding {
  /** Returns the shard of a key. All replicas agree on it. */
  shardOf(key: ObjectKey): number;
  /** Returns whether this process holds the shard of `key` now. */
  holds(key: ObjectKey): boolean;
  /** Registers `serve`, which is called for every shard that this process acquires. */
  onShard(serve: ShardHandler): void;
}

/** Queue and caches of a sharded controller. */
export interface ShardedQueue {
  /** Informers that the syncs read. */
  informers(): Iterable<SharedInformer>;
  /** Enqueues all keys of `shard`, as after the first list. */
  requeue(shard: number): void;
}

/**
 * Opens each acquired shard when the caches contain at least the state of the server at its acquisition, because
 * the previous owner may have written just before. Then enqueues all its keys, because the previous owner may have
 * left some unfinished. Before the shard is released, its syncs in flight end.
 */
export function serveShards(
  sharding: Sharding,
  ownership: KeyOwnership,
  queue: ShardedQueue,
  deps: SyncBarrierDeps,
): void {
  sharding.onShard(async (shard, signal) => {
    const caches = Array.from(queue.informers()).flatMap(({ parts }) => parts);
    const current = await Promise.all(caches.map((cache) => waitUntilCurrent(cache, deps, signal)));
    if (current.includes(false)) return;
    ownership.open(shard);
    queue.requeue(shard);
    await untilAborted(signal);
    await ownership.close(shard);
  });
}
