/** Errors below this depth are not looked at: a chain of causes may be a circle. */
const DEEPEST_CAUSE = 8;

/** Errors of an `AggregateError` that are looked at. */
const MAX_ERRORS = 10;

/** UIDs, and numbers that are words of their own: resourceVersions, ports, durations. */
const VARYING =
  /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|(?<![\w.-])\d+(?:\.\d+)?(?:ms|[smh])?(?![\w-])/g;

/**
 * Identifies what made the sync of `key` fail: equal for errors of different keys that differ only in
 * the name of the object, in names derived from it, in its namespace, in UIDs and in numbers.
 */
export function errorCause(error: unknown, key: string): string {
  const [name = '', namespace] = key.split('/').reverse();
  const names = namespace ? [name, namespace] : [name];
  const form = names.filter((each) => each !== '').map(derivedFrom);
  return form.length === 0
    ? causeOf(error, 0, (text) => text)
    : causeOf(error, 0, withoutNames(new RegExp(form.join('|'), 'g')));
}

function withoutNames(names: RegExp): (text: string) => string {
  return (text) => text.replaceAll(names, '…').replaceAll(VARYING, '#');
}

/** Matches `web`, `web-0` and `web.v1`, as whole words. */
function derivedFrom(name: string): string {
  const escaped = name.replaceAll(/[^\w-]/g, String.raw`\$&`);
  return String.raw`(?<![\w.-])${escaped}(?:[.-][\w.-]*)?(?!\w)`;
}

function causeOf(error: unknown, depth: number, reduced: (text: string) => string): string {
  if (!(error instanceof Error)) return reduced(String(error));
  const own = `${error.name}: ${reduced(error.message)}`;
  if (depth >= DEEPEST_CAUSE) return own;
  const nested: readonly unknown[] =
    error instanceof AggregateError ? error.errors.slice(0, MAX_ERRORS) : [];
  const causes = error.cause === undefined ? nested : [...nested, error.cause];
  const texts = new Set(causes.map((cause) => causeOf(cause, depth + 1, reduced)));
  return [own, ...[...texts].toSorted()].join('\0');
}
