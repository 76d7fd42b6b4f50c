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
    const keys = presentKeys(left);
    if (keys.length !== presentKeys(right).length) return false;
    for (const key of keys) {
      const counterpart = memberOf(right, key);
      if (counterpart === undefined) return false;
      pending.push([memberOf(left, key), counterpart]);
    }
  }
  return true;
}

function presentKeys(value: object): string[] {
  return Object.keys(value).filter((key) => memberOf(value, key) !== undefined);
}

function memberOf(value: object, key: string): unknown {
  return Object.hasOwn(value, key) ? (value as Record<string, unknown>)[key] : undefined;
}
