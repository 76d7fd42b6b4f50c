import type { ObjectKey } from '../api/object-key.ts';
import type { SharedInformer } from '../cache/shared-informer.ts';
import type { ShardHandler } from '../sharding/shards.ts';
import { untilAborted } from '../util/abort.ts';
import type { KeyOwnership } from './key-ownership.ts';
import { waitUntilCurrent } from './sync-barrier.ts';
import type { SyncBarrierDeps } from './sync-barrier.ts';

/** That keys are split between processes; `Shards` do it. */
export interface Sharding {
  /** The shard that a key belongs to: in every process the same. */
  shardOf(key: ObjectKey): number;
  /** Whether this process holds that shard now. */
  holds(key: ObjectKey): boolean;
  /** Has `serve` called for every shard that this process comes to hold. */
  onShard(serve: ShardHandler): void;
}

export interface ServedKeys {
  /** What the keys' runs read. */
  informers(): Iterable<SharedInformer>;
  /** Queues the keys of `shard`, as if all that concerns them had just been listed. */
  requeue(shard: number): void;
}

/**
 * Opens each shard that is held once the caches show at least what the server had by then: its holder
 * before may have written until a moment ago. All its keys run then, as nobody can tell what was left
 * undone. When the shard is to be given up, its runs in flight end first.
 */
export function serveShards(
  sharding: Sharding,
  ownership: KeyOwnership,
  keys: ServedKeys,
  deps: SyncBarrierDeps,
): void {
  sharding.onShard(async (shard, signal) => {
    const caches = Array.from(keys.informers()).flatMap(({ parts }) => parts);
    const current = await Promise.all(caches.map((cache) => waitUntilCurrent(cache, deps, signal)));
    if (current.includes(false)) return;
    ownership.open(shard);
    keys.requeue(shard);
    await untilAborted(signal);
    await ownership.close(shard);
  });
}
