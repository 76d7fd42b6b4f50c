/**
 * Freezes a JSON value with everything in it, so that whoever changes a shared object is thrown at
 * where it happens. Iterative: depth is the sender's choice, the stack is ours.
 */
export function deepFreeze(root: object): void {
  const pending: object[] = [root];
  for (let value = pending.pop(); value; value = pending.pop()) {
    if (Object.isFrozen(value)) continue;
    Object.freeze(value);
    for (const member of Object.values(value)) {
      if (typeof member === 'object' && member !== null) pending.push(member);
    }
  }
}
