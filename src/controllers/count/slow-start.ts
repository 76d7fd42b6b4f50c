/**
 * Does `work` for every item, in batches of 1, 2, 4 and so on, and stops at the first batch in
 * which something failed. Where every call would fail (a quota, an admission webhook) this costs
 * the server one call and not hundreds; where all is well it is nearly as fast as all at once.
 *
 * @returns the first failure, or undefined
 */
export async function slowStart<T, F>(
  items: readonly T[],
  work: (item: T) => Promise<F | undefined>,
): Promise<F | undefined> {
  for (let from = 0, size = 1; from < items.length; from += size, size *= 2) {
    const results = await Promise.all(items.slice(from, from + size).map(work));
    const failure = results.find((result) => result !== undefined);
    if (failure !== undefined) return failure;
  }
  return undefined;
}
