import type { ObjectKey } from '../api/object-key.ts';

/**
 * Which keys are filed under which values: one index's content. A value that no key has left is
 * forgotten. What a key is filed under is remembered here, so that removing it never depends on
 * an index function giving the same answer twice.
 */
export class Filing {
  readonly #keys = new Map<string, Set<ObjectKey>>();
  readonly #values = new Map<ObjectKey, readonly string[]>();

  /** Files `key` under `values` and under no others. */
  file(key: ObjectKey, values: readonly string[]): void {
    const before = this.#values.get(key);
    if (before !== undefined) {
      if (sameStrings(before, values)) return;
      for (const value of before) if (!values.includes(value)) this.#remove(value, key);
    }
    if (values.length === 0) {
      this.#values.delete(key);
      return;
    }
    this.#values.set(key, values);
    for (const value of values) {
      const keys = this.#keys.get(value);
      if (keys) keys.add(key);
      else this.#keys.set(value, new Set([key]));
    }
  }

  keysUnder(value: string): Iterable<ObjectKey> {
    return this.#keys.get(value) ?? [];
  }

  /** Values under which at least one key is filed. */
  values(): Iterable<string> {
    return this.#keys.keys();
  }

  #remove(value: string, key: ObjectKey): void {
    const keys = this.#keys.get(value);
    keys?.delete(key);
    if (keys?.size === 0) this.#keys.delete(value);
  }
}

function sameStrings(a: readonly string[], b: readonly string[]): boolean {
  if (a.length !== b.length) return false;
  for (let at = 0; at < a.length; at++) if (a[at] !== b[at]) return false;
  return true;
}
