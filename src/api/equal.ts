/**
 * True if two JSON values are the same. Own enumerable keys only, so a `__proto__` key is data like
 * any other; `undefined` members count as absent, as they do on the wire. Iterative: depth is the
 * sender's choice, the stack is ours.
 */
export function equalJson(a: unknown, b: unknown): boolean {
  const pending: [unknown, unknown][] = [[a, b]];
  for (let pair = pending.pop(); pair; pair = pending.pop()) {
    const [left, right] = pair;
    if (left === right) continue;
    if (typeof left !== 'object' || typeof right !== 'object' || !left || !right) return false;
    if (Array.isArray(left) || Array.isArray(right)) {
      if (!Array.isArray(left) || !Array.isArray(right) || left.length !== right.length)
        return false;
      for (let index = 0; index < left.length; index++) pending.push([left[index], right[index]]);
      continue;
    }
    const leftMembers = members(left);
    const rightMembers = members(right);
    if (leftMembers.size !== rightMembers.size) return false;
    for (const [key, value] of leftMembers) {
      if (!rightMembers.has(key)) return false;
      pending.push([value, rightMembers.get(key)]);
    }
  }
  return true;
}

function members(value: object): Map<string, unknown> {
  const entries = new Map<string, unknown>();
  for (const [key, member] of Object.entries(value)) {
    if (member !== undefined) entries.set(key, member);
  }
  return entries;
}
