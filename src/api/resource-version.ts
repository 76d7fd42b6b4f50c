/**
 * Compares two resourceVersions of one resource like apimachinery's CompareResourceVersion (KEP-5504): as
 * decimal numbers of any length, without sign and leading zeros.
 *
 * @returns a negative number if `a` is older, 0 if they are equal, a positive number if `a` is newer
 * @throws {SyntaxError} if one of them is not such a number
 *
 * @example
 * ```ts
 * import { compareResourceVersions } from 'crd-controller/objects';
 *
 * console.log(compareResourceVersions('9', '10') < 0); // prints: true
 * ```
 */
export function compareResourceVersions(a: string, b: string): number {
  requireWellFormed(a);
  requireWellFormed(b);
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * Reports whether `a` is older than `b`. Returns false if one of them cannot be compared: some servers send
 * empty or other resourceVersions.
 */
export function isOlderResourceVersion(a: string, b: string): boolean {
  return a !== b && WELL_FORMED.test(a) && WELL_FORMED.test(b) && compareResourceVersions(a, b) < 0;
}

/** Returns false for the values that a server reads as "any version". */
export function isPointInTime(resourceVersion: string): boolean {
  return resourceVersion !== '' && resourceVersion !== '0';
}

const WELL_FORMED = /^[1-9][0-9]*$/;

function requireWellFormed(resourceVersion: string): void {
  if (!WELL_FORMED.test(resourceVersion)) {
    throw new SyntaxError(`Malformed resourceVersion: ${JSON.stringify(resourceVersion)}`);
  }
}
