/** Minor versions of Kubernetes that this release is tested with: the three that Kubernetes supports. */
export const NEWEST_MINOR = 37;
export const OLDEST_MINOR: number = NEWEST_MINOR - 2;

/** Relation of a server's version to the tested versions. */
export type Skew = 'supported' | 'older' | 'newer' | 'unknown';

/**
 * Compares the version of a server with the tested versions.
 *
 * @param major from `/version`: `1`
 * @param minor from `/version`, where some vendors append a plus: `36+`
 */
export function skewOf({ major, minor }: { readonly major: string; readonly minor: string }): Skew {
  const number = Number.parseInt(minor, 10);
  if (major !== '1' || Number.isNaN(number)) return 'unknown';
  if (number < OLDEST_MINOR) return 'older';
  return number > NEWEST_MINOR ? 'newer' : 'supported';
}
