import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import { namespaceOf } from '../api/object-key.ts';
import type { ObjectKey } from '../api/object-key.ts';
import { LISTER_QUERY, requirementsOf } from './lister.ts';
import type { Lister, ListerQuery } from './lister.ts';
import { checkOptions } from '../util/check-options.ts';

/** The caches of several namespaces, read as one. */
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
    checkOptions(query, LISTER_QUERY, 'Lister.list');
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
