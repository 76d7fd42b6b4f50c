/**
 * Results by what they were made from, for texts of which there are few as a rule. It is bounded, as
 * clients choose the texts: when it is full it forgets them all, and results are made again.
 */
export class Memo<V> {
  readonly #capacity: number;
  readonly #make: (text: string) => V;
  readonly #results = new Map<string, { readonly value: V }>();

  constructor(capacity: number, make: (text: string) => V) {
    this.#capacity = capacity;
    this.#make = make;
  }

  /** What `make` returned for `text`, now or before. */
  get(text: string): V {
    let result = this.#results.get(text);
    if (!result) {
      result = { value: this.#make(text) };
      if (this.#results.size >= this.#capacity) this.#results.clear();
      this.#results.set(text, result);
    }
    return result.value;
  }

  /** Whether `get` has nothing to make. */
  has(text: string): boolean {
    return this.#results.has(text);
  }
}
