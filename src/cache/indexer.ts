import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import type { ObjectKey } from '../api/object-key.ts';
import { compareResourceVersions } from '../api/resource-version.ts';

/** Returns the index values of an object. Synchronous, and depends on the object alone. */
export type IndexFunction<T extends KubernetesObject> = (
  object: DeepReadonly<T>,
) => readonly string[];

/** Index functions by the name of the index. */
export type IndexFunctions<T extends KubernetesObject> = Readonly<Record<string, IndexFunction<T>>>;

/** Called when an index function throws for an object. */
export type IndexErrorHandler = (error: unknown, index: string, key: ObjectKey) => void;

/** Name of the index by namespace. */
export const NAMESPACE_INDEX = 'namespace';

export function namespaceIndex(object: DeepReadonly<KubernetesObject>): readonly string[] {
  return [object.metadata.namespace ?? ''];
}

interface Index<T extends KubernetesObject> {
  readonly name: string;
  valuesOf(object: DeepReadonly<T>): readonly string[];
  readonly keys: InvertedIndex;
}

/** Index values of one object, in the order of the indexes. */
type Values = readonly (readonly string[])[];

/** What the store has under one key, so that a change needs a single lookup. */
interface Entry<T extends KubernetesObject> {
  readonly key: ObjectKey;
  object: DeepReadonly<T>;
  /**
   * Remembered, so that a removal does not depend on an index function that returns the same result
   * twice.
   */
  values: Values;
}

/** The differences between two states of the store. */
export interface Replacement<T extends KubernetesObject> {
  /** In the order of the new objects; `old` is undefined for an addition. */
  readonly changed: readonly {
    readonly old: DeepReadonly<T> | undefined;
    readonly object: DeepReadonly<T>;
  }[];
  readonly removed: readonly DeepReadonly<T>[];
}

/**
 * Stores objects by key, with any number of named indexes. Objects are shared and never modified. Every
 * method is synchronous, so a reader sees the store before or after a change.
 *
 * If an index function throws, or does not return an array of strings, the write fails without a change.
 * With `onIndexError`, the object is stored without values in that index.
 */
export class Indexer<T extends KubernetesObject> {
  readonly #entries = new Map<ObjectKey, Entry<T>>();
  readonly #indexes: Index<T>[] = [];
  readonly #onIndexError: IndexErrorHandler | undefined;
  #resourceVersion = '';

  constructor(indexers: IndexFunctions<T> = {}, onIndexError?: IndexErrorHandler) {
    this.#onIndexError = onIndexError;
    this.addIndexers(indexers);
  }

  get size(): number {
    return this.#entries.size;
  }

  /**
   * The latest resourceVersion in the store, of a change, list or bookmark; empty before the first.
   */
  get lastStoreSyncResourceVersion(): string {
    return this.#resourceVersion;
  }

  /**
   * Whether the store contains every change up to `resourceVersion`. A malformed one has no order and
   * must be equal to the store's.
   */
  hasReached(resourceVersion: string): boolean {
    if (this.#resourceVersion === resourceVersion) return true;
    try {
      return compareResourceVersions(this.#resourceVersion, resourceVersion) >= 0;
    } catch (error) {
      if (error instanceof SyntaxError) return false;
      throw error;
    }
  }

  get(key: ObjectKey): DeepReadonly<T> | undefined {
    return this.#entries.get(key)?.object;
  }

  keys(): IterableIterator<ObjectKey> {
    return this.#entries.keys();
  }

  *values(): IterableIterator<DeepReadonly<T>> {
    for (const { object } of this.#entries.values()) yield object;
  }

  hasIndex(name: string): boolean {
    return this.#indexes.some((index) => index.name === name);
  }

  /** Returns the objects with this index value. */
  byIndex(name: string, value: string): DeepReadonly<T>[] {
    return this.#lookUp(this.#index(name).keys.keysOf(value));
  }

  /** Returns the keys with this index value, sorted. */
  indexKeys(name: string, value: string): ObjectKey[] {
    return [...this.#index(name).keys.keysOf(value)].sort();
  }

  /** Returns the objects that share at least one value of the index with `object`, each once. */
  sharing(name: string, object: DeepReadonly<T>): DeepReadonly<T>[] {
    const index = this.#index(name);
    const keys = new Set<ObjectKey>();
    for (const value of index.valuesOf(object)) {
      for (const key of index.keys.keysOf(value)) keys.add(key);
    }
    return this.#lookUp(keys);
  }

  /** Returns the values of at least one object. */
  indexValues(name: string): string[] {
    return [...this.#index(name).keys.values()];
  }

  /**
   * Adds indexes for present and future objects; all of them or none.
   *
   * @throws {Error} if an index of the same name exists
   */
  addIndexers(indexers: IndexFunctions<T>): void {
    const taken = Object.keys(indexers).filter((name) => this.hasIndex(name));
    if (taken.length > 0) {
      throw new Error(`Indexes with these names already exist: ${taken.join(', ')}`);
    }
    const added = Object.entries(indexers).map(([name, valuesOf]): Index<T> => {
      if (valuesOf.constructor.name === 'AsyncFunction') {
        throw new TypeError(`Index function ${name} is async; index functions must be synchronous`);
      }
      return { name, valuesOf, keys: new InvertedIndex() };
    });
    const entries = [...this.#entries.values()];
    const values = entries.map(({ key, object }) => this.#valuesOf(added, key, object));
    for (const index of added) this.#indexes.push(index);
    for (const [at, entry] of entries.entries()) {
      this.#apply(entry, entry.object, [...entry.values, ...(values[at] ?? [])]);
    }
  }

  /** Adds or replaces the object of this key, and returns the previous one. */
  set(key: ObjectKey, object: DeepReadonly<T>): DeepReadonly<T> | undefined {
    const values = this.#valuesOf(this.#indexes, key, object);
    const entry = this.#entries.get(key);
    if (!entry) {
      this.#add(key, object, values);
      return undefined;
    }
    const old = entry.object;
    this.#apply(entry, object, values);
    return old;
  }

  /** Removes and returns the object of this key. */
  delete(key: ObjectKey): DeepReadonly<T> | undefined {
    const entry = this.#entries.get(key);
    if (!entry) return undefined;
    this.#remove(entry);
    return entry.object;
  }

  /**
   * Replaces all objects in one step. Objects of the same uid and resourceVersion remain, and cost one
   * comparison.
   *
   * @param keepsUnchanged false if the server may have lost its history, so that a resourceVersion does not
   *   identify a state
   */
  replace(
    objects: ReadonlyMap<ObjectKey, DeepReadonly<T>>,
    resourceVersion: string,
    keepsUnchanged = true,
  ): Replacement<T> {
    const changes: {
      readonly key: ObjectKey;
      readonly entry: Entry<T> | undefined;
      readonly old: DeepReadonly<T> | undefined;
      readonly object: DeepReadonly<T>;
      readonly values: Values;
    }[] = [];
    let known = 0;
    for (const [key, object] of objects) {
      const entry = this.#entries.get(key);
      if (entry) known++;
      const old = entry?.object;
      if (keepsUnchanged && old && hasSameVersion(old, object)) continue;
      const values = this.#valuesOf(this.#indexes, key, object);
      changes.push({ key, entry, old, object, values });
    }
    const removed = known === this.#entries.size ? [] : this.#removeAllExcept(objects);
    for (const { key, entry, object, values } of changes) {
      if (entry) this.#apply(entry, object, values);
      else this.#add(key, object, values);
    }
    this.#resourceVersion = resourceVersion;
    return { changed: changes, removed };
  }

  /** Records that the store contains every change up to `resourceVersion`. */
  reached(resourceVersion: string): void {
    this.#resourceVersion = resourceVersion;
  }

  #index(name: string): Index<T> {
    const index = this.#indexes.find((index) => index.name === name);
    if (!index) throw new Error(`Index with name ${name} does not exist`);
    return index;
  }

  #lookUp(keys: Iterable<ObjectKey>): DeepReadonly<T>[] {
    const objects: DeepReadonly<T>[] = [];
    for (const key of keys) {
      const entry = this.#entries.get(key);
      if (entry) objects.push(entry.object);
    }
    return objects;
  }

  #add(key: ObjectKey, object: DeepReadonly<T>, values: Values): void {
    const entry: Entry<T> = { key, object, values: NO_VALUES };
    this.#entries.set(key, entry);
    this.#apply(entry, object, values);
  }

  #apply(entry: Entry<T>, object: DeepReadonly<T>, values: Values): void {
    const before = entry.values;
    entry.object = object;
    if (sameValues(before, values)) return;
    entry.values = this.#indexes.map(({ keys }, at) =>
      keys.move(entry.key, before[at] ?? NO_STRINGS, values[at] ?? NO_STRINGS),
    );
  }

  #remove({ key, values }: Entry<T>): void {
    this.#entries.delete(key);
    for (const [at, { keys }] of this.#indexes.entries()) {
      keys.move(key, values[at] ?? NO_STRINGS, NO_STRINGS);
    }
  }

  #removeAllExcept(objects: ReadonlyMap<ObjectKey, unknown>): DeepReadonly<T>[] {
    const removed: DeepReadonly<T>[] = [];
    for (const entry of this.#entries.values()) {
      if (objects.has(entry.key)) continue;
      this.#remove(entry);
      removed.push(entry.object);
    }
    return removed;
  }

  #valuesOf(indexes: readonly Index<T>[], key: ObjectKey, object: DeepReadonly<T>): Values {
    const values: (readonly string[])[] = [];
    for (const index of indexes) values.push(this.#valuesIn(index, key, object));
    return values;
  }

  #valuesIn(index: Index<T>, key: ObjectKey, object: DeepReadonly<T>): readonly string[] {
    const { name } = index;
    try {
      const values: unknown = index.valuesOf(object);
      if (isStrings(values)) return values;
      // Prevents an unhandled rejection.
      if (values instanceof Promise) values.catch(() => undefined);
      throw new TypeError(
        `Index function ${name} returned ${describe(values)} for ${key} instead of an array of strings`,
      );
    } catch (error) {
      if (!this.#onIndexError) throw error;
      this.#onIndexError(error, name, key);
      return [];
    }
  }
}

const NO_VALUES: Values = [];
const NO_STRINGS: readonly string[] = [];

/** Reports whether both are one state of one object, unless the server has lost its history. */
export function hasSameVersion(
  old: DeepReadonly<KubernetesObject>,
  object: DeepReadonly<KubernetesObject>,
): boolean {
  const { uid, resourceVersion } = object.metadata;
  return old.metadata.resourceVersion === resourceVersion && old.metadata.uid === uid;
}

function isStrings(values: unknown): values is readonly string[] {
  if (!Array.isArray(values)) return false;
  for (const value of values) if (typeof value !== 'string') return false;
  return true;
}

function describe(value: unknown): string {
  if (value instanceof Promise) return 'a promise';
  return Array.isArray(value) ? 'an array with other values' : typeof value;
}

/** The keys with one index value. */
interface Bucket {
  readonly keys: Set<ObjectKey>;
  /** The value alone, shared by the objects that have no other. */
  readonly values: readonly string[];
}

/** Keys by index value. */
class InvertedIndex {
  readonly #buckets = new Map<string, Bucket>();

  /** Replaces the values of `key`. Returns the values in the form to remember. */
  move(key: ObjectKey, before: readonly string[], values: readonly string[]): readonly string[] {
    if (sameStrings(before, values)) return before;
    for (const value of before) if (!values.includes(value)) this.#remove(value, key);
    let remembered = values;
    for (const value of values) {
      let bucket = this.#buckets.get(value);
      if (!bucket) {
        bucket = { keys: new Set(), values: [value] };
        this.#buckets.set(value, bucket);
      }
      bucket.keys.add(key);
      if (values.length === 1) remembered = bucket.values;
    }
    return remembered;
  }

  keysOf(value: string): Iterable<ObjectKey> {
    return this.#buckets.get(value)?.keys ?? [];
  }

  /** Returns the values of at least one key. */
  values(): Iterable<string> {
    return this.#buckets.keys();
  }

  #remove(value: string, key: ObjectKey): void {
    const keys = this.#buckets.get(value)?.keys;
    keys?.delete(key);
    if (keys?.size === 0) this.#buckets.delete(value);
  }
}

function sameValues(a: Values, b: Values): boolean {
  if (a.length !== b.length) return false;
  for (let at = 0; at < a.length; at++) {
    if (!sameStrings(a[at] ?? NO_STRINGS, b[at] ?? NO_STRINGS)) return false;
  }
  return true;
}

function sameStrings(a: readonly string[], b: readonly string[]): boolean {
  if (a.length !== b.length) return false;
  for (let at = 0; at < a.length; at++) if (a[at] !== b[at]) return false;
  return true;
}
