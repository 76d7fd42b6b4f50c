/**
 * The shard that a key belongs to, of `count`: the same in every process, whatever it knows of the
 * others. Shards are equal ranges of a hash, so that many keys are spread evenly.
 *
 * FNV-1a, and a finalizer: by itself it leaves the high bits of names that differ only at their ends
 * close together.
 */
export function shardOf(key: string, count: number): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < key.length; i++) {
    hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  hash ^= hash >>> 16;
  return Math.floor(((hash >>> 0) / 2 ** 32) * count);
}
