/**
 * True if `actual` says all that `desired` says; what `desired` is silent about may be anything, as
 * others (the server's defaults, autoscalers, people) have their say there.
 *
 * An object covers another member by member. A list of objects covers another if each of its
 * elements is covered by one of the actual: servers merge such lists by key, and add elements of
 * their own. A list of plain values is one value. Recursive: `desired` is of the caller's making.
 */
export function covers(actual: unknown, desired: unknown): boolean {
  if (actual === desired || desired === undefined) return true;
  if (typeof actual !== 'object' || typeof desired !== 'object' || !actual || !desired) {
    return false;
  }
  if (Array.isArray(desired)) {
    if (!Array.isArray(actual)) return false;
    const candidates: readonly unknown[] = actual;
    if (desired.length === 0) return candidates.length === 0;
    const isOfObjects = desired.every((item) => typeof item === 'object' && item !== null);
    return isOfObjects
      ? desired.every((item) => candidates.some((candidate) => covers(candidate, item)))
      : desired.length === candidates.length &&
          desired.every((item, index) => covers(candidates[index], item));
  }
  if (Array.isArray(actual)) return false;
  return Object.entries(desired).every(([name, value]) =>
    covers(
      Object.hasOwn(actual, name) ? (actual as Record<string, unknown>)[name] : undefined,
      value,
    ),
  );
}
