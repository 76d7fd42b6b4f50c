import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import type { ObjectKey } from '../api/object-key.ts';
import { compareResourceVersions } from '../api/resource-version.ts';

/**
 * The values under which an object is found in an index; synchronous, and a function of the object
 * alone.
 */
export type IndexFunction<T extends KubernetesObject> = (
  object: DeepReadonly<T>,
) => readonly string[];

/** Index functions by the name of the index. */
export type IndexFunctions<T extends KubernetesObject> = Readonly<Record<string, IndexFunction<T>>>;

/** Called when an index function fails on an object. */
export type IndexErrorHandler = (error: unknown, index: string, key: ObjectKey) => void;

/** Name of the index by namespace. */
export const NAMESPACE_INDEX = 'namespace';

export function namespaceIndex(object: DeepReadonly<KubernetesObject>): readonly string[] {
  return [object.metadata.namespace ?? ''];
}

interface Index<T extends KubernetesObject> {
  valuesOf(object: DeepReadonly<T>): readonly string[];
  filing: InvertedIndex;
}

/**
 * Objects by key and by any number of named indexes. Objects are shared and never changed; every
 * method is synchronous, so a reader sees the store before a change or after it.
 *
 * An index function that throws, or returns anything but a list of strings, fails the write before
 * it has changed anything; with `onIndexError` the object is stored and is merely not found in
 * that index.
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
   * How far the store has come: the resourceVersion of the newest write, list or bookmark that is
   * in it; empty before the first.
   */
  get lastStoreSyncResourceVersion(): string {
    return this.#resourceVersion;
  }

  /**
   * True if everything up to `resourceVersion` is in the store. Malformed ones have no order: they
   * are reached only while they are equal to the store's.
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

  /** Objects filed under `value`. */
  byIndex(name: string, value: string): DeepReadonly<T>[] {
    return this.#lookUp(this.#index(name).filing.keysUnder(value));
  }

  /** Keys filed under `value`, sorted. */
  indexKeys(name: string, value: string): ObjectKey[] {
    return [...this.#index(name).filing.keysUnder(value)].sort();
  }

  /** Objects that share at least one value of the index with `object`, each once. */
  sharing(name: string, object: DeepReadonly<T>): DeepReadonly<T>[] {
    const index = this.#index(name);
    const keys = new Set<ObjectKey>();
    for (const value of index.valuesOf(object)) {
      for (const key of index.filing.keysUnder(value)) keys.add(key);
    }
    return this.#lookUp(keys);
  }

  /** Values under which at least one object is filed. */
  indexValues(name: string): string[] {
    return [...this.#index(name).filing.values()];
  }

  /**
   * Adds indexes and files the objects that are there already. All or nothing.
   *
   * @throws {Error} if a name is taken
   */
  addIndexers(indexers: IndexFunctions<T>): void {
    const taken = Object.keys(indexers).filter((name) => this.#indexes.has(name));
    if (taken.length > 0) {
      throw new Error(`There are indexes of these names already: ${taken.join(', ')}`);
    }
    const added = Object.entries(indexers).map(([name, valuesOf]) => {
      if (valuesOf.constructor.name === 'AsyncFunction') {
        throw new TypeError(`Index function ${name} is async; an index is computed synchronously`);
      }
      const index: Index<T> = { valuesOf, filing: new InvertedIndex() };
      index.filing = this.#filingOf(name, index, this.#objects);
      return [name, index] as const;
    });
    for (const [name, index] of added) this.#indexes.set(name, index);
  }

  /** Adds the object or replaces the one of its key. */
  set(key: ObjectKey, object: DeepReadonly<T>): void {
    const values: (readonly string[])[] = [];
    for (const [name, index] of this.#indexes) {
      values.push(this.#valuesOf(name, index, key, object));
    }
    this.#objects.set(key, object);
    let position = 0;
    for (const index of this.#indexes.values()) index.filing.file(key, values[position++] ?? []);
  }

  /** Removes the object of this key; returns it, if there was one. */
  delete(key: ObjectKey): DeepReadonly<T> | undefined {
    const object = this.#objects.get(key);
    if (object === undefined) return undefined;
    this.#objects.delete(key);
    for (const index of this.#indexes.values()) index.filing.file(key, []);
    return object;
  }

  /**
   * Puts `objects` in the place of everything, in one step.
   *
   * @returns what was there before
   */
  replace(
    objects: Map<ObjectKey, DeepReadonly<T>>,
    resourceVersion: string,
  ): ReadonlyMap<ObjectKey, DeepReadonly<T>> {
    const rebuilt = Array.from(
      this.#indexes,
      ([name, index]) => [index, this.#filingOf(name, index, objects)] as const,
    );
    const previous = this.#objects;
    this.#objects = objects;
    for (const [index, filing] of rebuilt) index.filing = filing;
    this.#resourceVersion = resourceVersion;
    return previous;
  }

  /** Everything up to `resourceVersion` is in the store. */
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

  #filingOf(
    name: string,
    index: Index<T>,
    objects: ReadonlyMap<ObjectKey, DeepReadonly<T>>,
  ): InvertedIndex {
    const filing = new InvertedIndex();
    for (const [key, object] of objects) {
      filing.file(key, this.#valuesOf(name, index, key, object));
    }
    return filing;
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
      // Its rejection, if any, would be nobody's.
      if (values instanceof Promise) values.catch(() => undefined);
      throw new TypeError(
        `Index function ${name} returned ${describe(values)} for ${key} instead of a list of strings`,
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
  return Array.isArray(value) ? 'a list with other things' : typeof value;
}

/**
 * Which keys are filed under which values: one index's content. A value that no key has left is
 * forgotten. What a key is filed under is remembered here, so that removing it never depends on
 * an index function giving the same answer twice.
 */
export class InvertedIndex {
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
