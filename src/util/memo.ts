/**
 * A cache of results by their input text, for inputs with few distinct values. Clients choose the texts, so
 * it is bounded: when it is full, it is cleared and results are computed again.
 */
export class Memo<V> {
  readonly #capacity: number;
  readonly #make: (text: string) => V;
  readonly #results = new Map<string, { readonly value: V }>();

  constructor(capacity: number, make: (text: string) => V) {
    this.#capacity = capacity;
    this.#make = make;
  }

  /** Returns the result of `make` for `text`, from the cache if it is there. */
  get(text: string): V {
    let result = this.#results.get(text);
    if (!result) {
      result = { value: this.#make(text) };
      if (this.#results.size >= this.#capacity) this.#results.clear();
      this.#results.set(text, result);
    }
    return result.value;
  }

  /** Whether the result for `text` is cached. */
  has(text: string): boolean {
    return this.#results.has(text);
  }
}

/**
 * Returns `make` with a cache: it runs once for each object. A result lives as long as its object. `make` must depend
 * on the object only, which must not change.
 */
export function oncePerObject<K extends object, V>(make: (object: K) => V): (object: K) => V {
  const results = new WeakMap<K, V>();
  return (object) => {
    const known = results.get(object);
    if (known !== undefined || results.has(object)) return known as V;
    const made = make(object);
    results.set(object, made);
    return made;
  };
}
