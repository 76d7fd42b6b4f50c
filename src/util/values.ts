/** Reports whether `value` is an object with members, such as a JSON object. Arrays are not. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the message of an error, or the text of any other value that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Reports whether `error` is an error of Node.js with this code, such as `ENOENT`. */
export function hasErrorCode(error: unknown, code: string): error is NodeJS.ErrnoException {
  return error instanceof Error && 'code' in error && error.code === code;
}

/** Makes the compiler check that a switch is exhaustive; throws a `TypeError` if it is not at run time. */
export function assertNever(value: never): never {
  throw new TypeError(`Unexpected value: ${JSON.stringify(value)}`);
}

/** Returns the indexes of values that occur before, in linear time. */
export function repeatedIndexes(values: readonly unknown[]): ReadonlySet<number> {
  const known = new Set<unknown>();
  const repeated = new Set<number>();
  for (const [index, value] of values.entries()) {
    if (known.has(value)) repeated.add(index);
    known.add(value);
  }
  return repeated;
}

/** Compares texts by their UTF-16 code units, for `sort`. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
