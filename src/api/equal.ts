/**
 * True if two JSON values are the same. Own enumerable keys only, so a `__proto__` key is data like
 * any other; `undefined` members count as absent, as they do on the wire. Iterative: depth is the
 * sender's choice, the stack is ours.
 */
export function equalJson(a: unknown, b: unknown): boolean {
  /** Pairs that are still to be compared, one after the other. */
  const pending: unknown[] = [a, b];
  while (pending.length > 0) {
    const right = pending.pop();
    const left = pending.pop();
    if (left === right) continue;
    if (typeof left !== 'object' || typeof right !== 'object' || !left || !right) return false;
    if (Array.isArray(left) || Array.isArray(right)) {
      if (!Array.isArray(left) || !Array.isArray(right) || left.length !== right.length)
        return false;
      for (let index = 0; index < left.length; index++) pending.push(left[index], right[index]);
      continue;
    }
    let present = 0;
    for (const key of Object.keys(left)) {
      const member = memberOf(left, key);
      if (member === undefined) continue;
      const counterpart = memberOf(right, key);
      if (counterpart === undefined) return false;
      present++;
      if (member !== counterpart) pending.push(member, counterpart);
    }
    if (present !== presentMembers(right)) return false;
  }
  return true;
}

function presentMembers(value: object): number {
  let present = 0;
  for (const key of Object.keys(value)) if (memberOf(value, key) !== undefined) present++;
  return present;
}

function memberOf(value: object, key: string): unknown {
  return Object.hasOwn(value, key) ? (value as Record<string, unknown>)[key] : undefined;
}

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
