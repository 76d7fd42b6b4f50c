import type { ObjectKey } from '../api/object-key.ts';
import { Deferred } from '../util/deferred.ts';
import type { SharedInformer } from '../cache/shared-informer.ts';
import { untilAborted } from '../util/abort.ts';
import { done } from '../workqueue/outcome.ts';
import type { Outcome } from '../workqueue/outcome.ts';
import type { SyncReport } from '../workqueue/sync-report.ts';
import type { ControllerObserver, Sharding } from './controller-options.ts';
import type { SyncGate } from './sync-pipeline.ts';
import { waitUntilCurrent } from './sync-barrier.ts';
import type { SyncBarrierDeps } from './sync-barrier.ts';

/**
 * Keys that this process syncs: the keys of its open shards. While a shard is being closed, running
 * syncs continue and new ones are rejected.
 */
export class KeyOwnership implements SyncGate, ControllerObserver {
  readonly #shardOf: (key: ObjectKey) => number;
  /** Open shards, and shards that are being closed. */
  readonly #shards = new Map<number, OpenShard>();

  constructor(shardOf: (key: ObjectKey) => number) {
    this.#shardOf = shardOf;
  }

  owns(key: ObjectKey): boolean {
    return this.#shards.get(this.#shardOf(key))?.isClosing === false;
  }

  /**
   * Starts a sync of `key`, if it is owned. Otherwise the shard was handed over since the key was queued, and its new
   * owner has queued the key, too.
   */
  check(key: ObjectKey): Outcome | undefined {
    const shard = this.#shards.get(this.#shardOf(key));
    if (!shard || shard.isClosing) return done();
    shard.syncing.add(key);
    return undefined;
  }

  /** Ends a sync. */
  ended({ key }: Pick<SyncReport<ObjectKey>, 'key'>): void {
    const shard = this.#shards.get(this.#shardOf(key));
    if (!shard?.syncing.delete(key)) return;
    if (shard.isClosing && shard.syncing.size === 0) shard.idle.resolve();
  }

  open(shard: number): void {
    this.#shards.set(shard, { syncing: new Set(), idle: new Deferred(), isClosing: false });
  }

  /** Closes a shard. Resolves when none of its keys is being synced. */
  async close(shard: number): Promise<void> {
    const closing = this.#shards.get(shard);
    if (!closing) return;
    closing.isClosing = true;
    if (closing.syncing.size > 0) await closing.idle.promise;
    this.#shards.delete(shard);
  }
}

interface OpenShard {
  /** Keys that are being synced. */
  readonly syncing: Set<ObjectKey>;
  readonly idle: Deferred;
  isClosing: boolean;
}

/** The caches of a sharded controller. */
export interface ShardedCaches {
  /** Informers that the syncs read. */
  readonly informers: readonly SharedInformer[];
  /** Enqueues the selected keys of all cached objects, as after the first list. */
  requeue(isWanted: (key: ObjectKey) => boolean, cause: string): void;
}

/**
 * Opens each acquired shard when the caches contain at least the state of the server at its acquisition, because
 * the previous owner may have written just before. Then enqueues all its keys, because the previous owner may have
 * left some unfinished. Before the shard is released, its syncs in flight end.
 */
export function serveShards(
  sharding: Sharding,
  ownership: KeyOwnership,
  caches: ShardedCaches,
  deps: SyncBarrierDeps,
): void {
  sharding.onShard(async (shard, signal) => {
    const parts = caches.informers.flatMap((informer) => informer.parts);
    const current = await Promise.all(parts.map((part) => waitUntilCurrent(part, deps, signal)));
    if (current.includes(false)) return;
    ownership.open(shard);
    caches.requeue((key) => sharding.shardOf(key) === shard, 'its shard was taken over');
    await untilAborted(signal);
    await ownership.close(shard);
  });
}
