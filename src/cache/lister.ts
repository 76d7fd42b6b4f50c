import { labelSelectorText, matchesLabels, parseLabelSelector } from '../api/label-selector.ts';
import type { LabelSelector, Requirement } from '../api/label-selector.ts';
import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import { namespaceOf } from '../api/object-key.ts';
import type { ObjectKey } from '../api/object-key.ts';
import { NAMESPACE_INDEX } from './indexer.ts';
import type { Indexer } from './indexer.ts';

/** Selects objects of a cache. */
export interface ListerQuery {
  /** @default all namespaces */
  readonly namespace?: string | undefined;
  /**
   * `app=web`, `{ matchLabels, matchExpressions }`, or the result of {@link parseLabelSelector}.
   * @default all labels
   */
  readonly selector?: string | LabelSelector | readonly Requirement[] | undefined;
}

/**
 * Read-only view of a cache. Objects are shared by all readers: copy one before you change it. Lists
 * have no particular order.
 */
export interface Lister<T extends KubernetesObject> {
  readonly size: number;
  /** Returns the cached object of the key, or undefined. */
  get(key: ObjectKey): DeepReadonly<T> | undefined;
  /** @throws {SyntaxError} if the selector is malformed */
  list(query?: ListerQuery): DeepReadonly<T>[];
  /** Returns whether the index exists. */
  hasIndex(name: string): boolean;
  /** @throws {Error} if there is no index of this name */
  byIndex(name: string, value: string): DeepReadonly<T>[];
  /**
   * Returns the keys of the objects with this index value, sorted.
   *
   * @throws {Error} if there is no index of this name
   */
  indexKeys(name: string, value: string): ObjectKey[];
}

/** Lister of one indexer. */
export class IndexLister<T extends KubernetesObject> implements Lister<T> {
  readonly #indexer: Indexer<T>;

  constructor(indexer: Indexer<T>) {
    this.#indexer = indexer;
  }

  get size(): number {
    return this.#indexer.size;
  }

  get(key: ObjectKey): DeepReadonly<T> | undefined {
    return this.#indexer.get(key);
  }

  list(query: ListerQuery = {}): DeepReadonly<T>[] {
    const { namespace, selector } = query;
    const requirements = requirementsOf(selector);
    const candidates = namespace ? this.#inNamespace(namespace) : [...this.#indexer.values()];
    if (requirements.length === 0) return candidates;
    return candidates.filter((object) => matchesLabels(requirements, object.metadata.labels));
  }

  hasIndex(name: string): boolean {
    return this.#indexer.hasIndex(name);
  }

  byIndex(name: string, value: string): DeepReadonly<T>[] {
    return this.#indexer.byIndex(name, value);
  }

  indexKeys(name: string, value: string): ObjectKey[] {
    return this.#indexer.indexKeys(name, value);
  }

  #inNamespace(namespace: string): DeepReadonly<T>[] {
    if (this.#indexer.hasIndex(NAMESPACE_INDEX)) {
      return this.#indexer.byIndex(NAMESPACE_INDEX, namespace);
    }
    return [...this.#indexer.values()].filter((object) => object.metadata.namespace === namespace);
  }
}

/** Combines the listers of several namespaces. */
export class MultiNamespaceLister<T extends KubernetesObject> implements Lister<T> {
  readonly #parts: ReadonlyMap<string, Lister<T>>;

  /** @param parts by namespace */
  constructor(parts: ReadonlyMap<string, Lister<T>>) {
    this.#parts = parts;
  }

  get size(): number {
    let size = 0;
    for (const part of this.#parts.values()) size += part.size;
    return size;
  }

  get(key: ObjectKey): DeepReadonly<T> | undefined {
    const namespace = namespaceOf(key);
    return namespace === undefined ? undefined : this.#parts.get(namespace)?.get(key);
  }

  list(query: ListerQuery = {}): DeepReadonly<T>[] {
    const { namespace, selector } = query;
    const parsed = { selector: requirementsOf(selector) };
    if (namespace) return this.#parts.get(namespace)?.list(parsed) ?? [];
    return this.#collect((part) => part.list(parsed));
  }

  hasIndex(name: string): boolean {
    return [...this.#parts.values()].every((part) => part.hasIndex(name));
  }

  byIndex(name: string, value: string): DeepReadonly<T>[] {
    return this.#collect((part) => part.byIndex(name, value));
  }

  indexKeys(name: string, value: string): ObjectKey[] {
    return this.#collect((part) => part.indexKeys(name, value)).sort();
  }

  #collect<E>(from: (part: Lister<T>) => readonly E[]): E[] {
    return [...this.#parts.values()].flatMap(from);
  }
}

/** @throws {SyntaxError} if the selector is malformed */
function requirementsOf(selector: ListerQuery['selector'] = []): readonly Requirement[] {
  return isParsed(selector) ? selector : parseLabelSelector(labelSelectorText(selector) ?? '');
}

function isParsed(
  selector: NonNullable<ListerQuery['selector']>,
): selector is readonly Requirement[] {
  return Array.isArray(selector);
}
