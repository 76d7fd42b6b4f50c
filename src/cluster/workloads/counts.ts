/** The counts of a status without those that are zero: the server leaves them out. */
export function counts<T extends string>(
  all: Readonly<Record<T, number>>,
): Partial<Record<T, number>> {
  return Object.fromEntries(
    Object.entries<number>(all).filter(([, count]) => count !== 0),
  ) as Partial<Record<T, number>>;
}
