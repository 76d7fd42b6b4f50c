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
