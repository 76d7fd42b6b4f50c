/**
 * Orders two resourceVersions of one resource, as apimachinery's CompareResourceVersion (KEP-5504)
 * does: decimal numbers without sign or leading zero, of any length.
 *
 * @returns a negative number if `a` is older, 0 if equal, a positive number if newer
 * @throws {SyntaxError} if either is not of that form: never guess an order
 */
export function compareResourceVersions(a: string, b: string): number {
  requireWellFormed(a);
  requireWellFormed(b);
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * True if `a` is certainly older than `b`. False if either has no order: a malformed one, or an empty
 * one, as a server of its own kind may send.
 */
export function isOlderResourceVersion(a: string, b: string): boolean {
  return a !== b && WELL_FORMED.test(a) && WELL_FORMED.test(b) && compareResourceVersions(a, b) < 0;
}

const WELL_FORMED = /^[1-9][0-9]*$/;

function requireWellFormed(resourceVersion: string): void {
  if (!WELL_FORMED.test(resourceVersion)) {
    throw new SyntaxError(`Malformed resourceVersion: ${JSON.stringify(resourceVersion)}`);
  }
}
