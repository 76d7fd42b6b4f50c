/**
 * The shard that `identity` should ask for, if it holds two fewer than somebody else: of those who
 * hold the most, one. When nobody asks any more, no two differ by more than one.
 *
 * @param holders who holds each shard; empty: nobody, as far as is known
 * @param random a number in [0, 1), so that two who hold too few ask for different ones
 */
export function shardToAskFor(
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

/** Whether `holder` gives `seeker` one of its shards: not if it would want it back. */
export function mayPart(holders: readonly string[], holder: string, seeker: string): boolean {
  const countOf = (who: string) => holders.filter((one) => one === who).length;
  return countOf(holder) - countOf(seeker) >= 2;
}
