/**
 * Minor versions of Kubernetes that this release is tested against: 1.34, 1.35, 1.36. Kubernetes
 * itself looks after its last three.
 */
export const NEWEST_MINOR = 36;
export const OLDEST_MINOR: number = NEWEST_MINOR - 2;

/** How a server's version stands to those that are tested. */
export type Skew = 'supported' | 'older' | 'newer' | 'unknown';

/**
 * @param major as `/version` has it: `1`
 * @param minor some vendors put a plus behind it: `36+`
 */
export function skewOf({ major, minor }: { readonly major: string; readonly minor: string }): Skew {
  const number = Number.parseInt(minor, 10);
  if (major !== '1' || Number.isNaN(number)) return 'unknown';
  if (number < OLDEST_MINOR) return 'older';
  return number > NEWEST_MINOR ? 'newer' : 'supported';
}
