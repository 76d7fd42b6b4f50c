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
  valuesOf(object: DeepReadonly<T>): readonly string[];
  entries: InvertedIndex;
}

/**
 * Stores objects by key, with any number of named indexes. Objects are shared and never modified. Every
 * method is synchronous, so a reader sees the store before or after a change.
 *
 * If an index function throws, or does not return an array of strings, the write fails without a change.
 * With `onIndexError`, the object is stored without values in that index.
 */
export class Indexer<T extends KubernetesObject> {
  #objects: Map<ObjectKey, DeepReadonly<T>> = new Map();
  readonly #indexes = new Map<string, Index<T>>();
  readonly #onIndexError: IndexErrorHandler | undefined;
  #resourceVersion = '';

  constructor(indexers: IndexFunctions<T> = {}, onIndexError?: IndexErrorHandler) {
    this.#onIndexError = onIndexError;
    this.addIndexers(indexers);
  }

  get size(): number {
    return this.#objects.size;
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
    return this.#objects.get(key);
  }

  has(key: ObjectKey): boolean {
    return this.#objects.has(key);
  }

  keys(): IterableIterator<ObjectKey> {
    return this.#objects.keys();
  }

  values(): IterableIterator<DeepReadonly<T>> {
    return this.#objects.values();
  }

  hasIndex(name: string): boolean {
    return this.#indexes.has(name);
  }

  /** Returns the objects with this index value. */
  byIndex(name: string, value: string): DeepReadonly<T>[] {
    return this.#lookUp(this.#index(name).entries.keysOf(value));
  }

  /** Returns the keys with this index value, sorted. */
  indexKeys(name: string, value: string): ObjectKey[] {
    return [...this.#index(name).entries.keysOf(value)].sort();
  }

  /** Returns the objects that share at least one value of the index with `object`, each once. */
  sharing(name: string, object: DeepReadonly<T>): DeepReadonly<T>[] {
    const index = this.#index(name);
    const keys = new Set<ObjectKey>();
    for (const value of index.valuesOf(object)) {
      for (const key of index.entries.keysOf(value)) keys.add(key);
    }
    return this.#lookUp(keys);
  }

  /** Returns the values of at least one object. */
  indexValues(name: string): string[] {
    return [...this.#index(name).entries.values()];
  }

  /**
   * Adds indexes for present and future objects; all of them or none.
   *
   * @throws {Error} if an index of the same name exists
   */
  addIndexers(indexers: IndexFunctions<T>): void {
    const taken = Object.keys(indexers).filter((name) => this.#indexes.has(name));
    if (taken.length > 0) {
      throw new Error(`Indexes with these names already exist: ${taken.join(', ')}`);
    }
    const added = Object.entries(indexers).map(([name, valuesOf]) => {
      if (valuesOf.constructor.name === 'AsyncFunction') {
        throw new TypeError(`Index function ${name} is async; index functions must be synchronous`);
      }
      const index: Index<T> = { valuesOf, entries: new InvertedIndex() };
      index.entries = this.#entriesOf(name, index, this.#objects);
      return [name, index] as const;
    });
    for (const [name, index] of added) this.#indexes.set(name, index);
  }

  /** Adds or replaces the object of this key. */
  set(key: ObjectKey, object: DeepReadonly<T>): void {
    const values: (readonly string[])[] = [];
    for (const [name, index] of this.#indexes) {
      values.push(this.#valuesOf(name, index, key, object));
    }
    this.#objects.set(key, object);
    let position = 0;
    for (const index of this.#indexes.values()) index.entries.set(key, values[position++] ?? []);
  }

  /** Removes and returns the object of this key. */
  delete(key: ObjectKey): DeepReadonly<T> | undefined {
    const object = this.#objects.get(key);
    if (object === undefined) return undefined;
    this.#objects.delete(key);
    for (const index of this.#indexes.values()) index.entries.set(key, []);
    return object;
  }

  /**
   * Replaces all objects in one step.
   *
   * @returns the previous objects
   */
  replace(
    objects: Map<ObjectKey, DeepReadonly<T>>,
    resourceVersion: string,
  ): ReadonlyMap<ObjectKey, DeepReadonly<T>> {
    const rebuilt = Array.from(
      this.#indexes,
      ([name, index]) => [index, this.#entriesOf(name, index, objects)] as const,
    );
    const previous = this.#objects;
    this.#objects = objects;
    for (const [index, entries] of rebuilt) index.entries = entries;
    this.#resourceVersion = resourceVersion;
    return previous;
  }

  /** Records that the store contains every change up to `resourceVersion`. */
  reached(resourceVersion: string): void {
    this.#resourceVersion = resourceVersion;
  }

  #index(name: string): Index<T> {
    const index = this.#indexes.get(name);
    if (!index) throw new Error(`Index with name ${name} does not exist`);
    return index;
  }

  #lookUp(keys: Iterable<ObjectKey>): DeepReadonly<T>[] {
    const objects: DeepReadonly<T>[] = [];
    for (const key of keys) {
      const object = this.#objects.get(key);
      if (object !== undefined) objects.push(object);
    }
    return objects;
  }

  #entriesOf(
    name: string,
    index: Index<T>,
    objects: ReadonlyMap<ObjectKey, DeepReadonly<T>>,
  ): InvertedIndex {
    const entries = new InvertedIndex();
    for (const [key, object] of objects) {
      entries.set(key, this.#valuesOf(name, index, key, object));
    }
    return entries;
  }

  #valuesOf(
    name: string,
    index: Index<T>,
    key: ObjectKey,
    object: DeepReadonly<T>,
  ): readonly string[] {
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

function isStrings(values: unknown): values is readonly string[] {
  if (!Array.isArray(values)) return false;
  for (const value of values) if (typeof value !== 'string') return false;
  return true;
}

function describe(value: unknown): string {
  if (value instanceof Promise) return 'a promise';
  return Array.isArray(value) ? 'an array with other values' : typeof value;
}

/**
 * Keys by index value. It remembers the values of each key, so a removal does not depend on an index
 * function that returns the same result twice.
 */
class InvertedIndex {
  readonly #keys = new Map<string, Set<ObjectKey>>();
  readonly #values = new Map<ObjectKey, readonly string[]>();

  /** Replaces the values of `key`. */
  set(key: ObjectKey, values: readonly string[]): void {
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

  keysOf(value: string): Iterable<ObjectKey> {
    return this.#keys.get(value) ?? [];
  }

  /** Returns the values of at least one key. */
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
