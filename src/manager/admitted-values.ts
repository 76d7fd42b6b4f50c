import { LruMap } from '../util/lru-map.ts';

/** Number of values that are remembered. */
const MAX_VALUES = 10_000;

/** A value that an owned object was created with, and what admission made of it. */
export interface AdmittedValue {
  /** The uid of the owner. */
  readonly owner: string;
  /** The value that the owner wants. */
  readonly wanted: string;
  /** The value that the object says it was created with. */
  readonly stored: string;
  /** The value that the object has. */
  readonly form: string | undefined;
  /** Whether the spec of the object was changed since its creation. */
  readonly isChanged: boolean;
}

/**
 * The values that admission replaced in owned objects. An object that was created for another value than the owner wants, or
 * has another one since its creation, is outdated, unless admission made the same of an object that was created for it: a new
 * object would be the same, too. After a restart of the program, one object of each such owner is replaced to find that out.
 */
export class AdmittedValues {
  readonly #known = new LruMap<string, true>(MAX_VALUES);

  /** Records an object that was created with the value that the owner wants, as the server returned it. */
  created(value: AdmittedValue): void {
    if (isOther(value)) this.#known.set(textOf(value), true);
  }

  isOutdated(value: AdmittedValue): boolean {
    const { wanted, stored, isChanged } = value;
    const isSuspect = stored !== wanted || isChanged;
    return isSuspect && isOther(value) && !this.#known.get(textOf(value));
  }
}

function isOther({ wanted, stored, form }: AdmittedValue): boolean {
  return stored !== wanted || form !== wanted;
}

function textOf({ owner, wanted, stored, form }: AdmittedValue): string {
  return JSON.stringify([owner, wanted, stored, form]);
}
