/**
 * Returns the shard of a key, of `count` shards. The result is the same in every process. Shards are equal
 * ranges of a hash, so keys are spread evenly.
 *
 * The hash is FNV-1a with a finalizer. Without the finalizer, names that differ only at their ends have
 * similar high bits.
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

/**
 * Returns the shard that `identity` should request, or undefined. It requests one from a replica that holds
 * the most shards, if that holds at least two more. When no replica requests a shard, their numbers
 * differ by at most one.
 *
 * @param holders the holder of each shard; empty if none is known
 * @param random a number in [0, 1), so that two replicas request different shards
 */
export function shardToRequest(
  holders: readonly string[],
  identity: string,
  random: number,
): number | undefined {
  const counts = new Map<string, number>();
  for (const holder of holders) counts.set(holder, (counts.get(holder) ?? 0) + 1);
  const mine = counts.get(identity) ?? 0;
  counts.delete('');
  const most = Math.max(0, ...counts.values());
  if (most - mine < 2) return undefined;
  const candidates = holders.flatMap((holder, shard) => (counts.get(holder) === most ? shard : []));
  return candidates[Math.floor(random * candidates.length)];
}

/** Returns whether `holder` hands over a shard to `requester`: not if it would then request one back. */
export function mayHandOver(
  holders: readonly string[],
  holder: string,
  requester: string,
): boolean {
  const countOf = (identity: string) => holders.filter((other) => other === identity).length;
  return countOf(holder) - countOf(requester) >= 2;
}
