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

function requireWellFormed(resourceVersion: string): void {
  if (!/^[1-9][0-9]*$/.test(resourceVersion)) {
    throw new SyntaxError(`Malformed resourceVersion: ${JSON.stringify(resourceVersion)}`);
  }
}
