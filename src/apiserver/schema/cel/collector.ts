import type { FoldName } from './expression.ts';
import { sortBy } from './functions/lists.ts';
import type { Meter } from './meter.ts';
import type { Dictionary, Result, Value } from './value.ts';
import { Failure, List, LiteralMap, NO_OVERLOAD, Uint, isDictionary } from './value.ts';

/** What making a list or a map costs. */
export const LIST_COST = 10;
export const MAP_COST = 30;

/** Why the entry cannot be added, if it cannot. */
export function insert(map: LiteralMap, key: Value, value: Value): Failure | undefined {
  const isKey = ['string', 'bigint', 'boolean', 'number'].includes(typeof key);
  if (!isKey && !(key instanceof Uint)) return new Failure('unsupported key type');
  return map.add(key, value) ? undefined : new Failure('Failed with repeated key');
}

/** What a macro has gathered so far. */
export class Collector {
  readonly #name: FoldName;
  readonly #items: Value[] = [];
  readonly #entries = new LiteralMap();
  #count = 0;
  #decided: boolean | undefined;
  #failure: Failure | undefined;

  constructor(name: FoldName) {
    this.#name = name;
  }

  /** What each pass costs besides its step: reading the accumulator, testing and changing it. */
  get iterationCost(): number {
    switch (this.#name) {
      case 'all':
      case 'exists':
        return 3;
      case 'existsOne':
        return 2;
      case 'filter':
        return LIST_COST + 3;
      case 'transformMap':
      case 'transformMapEntry':
        return MAP_COST + 2;
      default:
        return LIST_COST + 2;
    }
  }

  /** True if no further pass can change the result. */
  add(
    value: Result,
    variables: ReadonlyMap<string, Value>,
    names: readonly string[],
    meter: Meter,
  ): boolean {
    switch (this.#name) {
      case 'all':
      case 'exists': {
        const decides = this.#name === 'exists';
        if (value === decides) this.#decided = decides;
        else if (value instanceof Failure) this.#failure ??= value;
        else if (typeof value !== 'boolean') this.#failure ??= NO_OVERLOAD;
        return this.#decided !== undefined;
      }
      case 'transformMapEntry':
        return this.#addEntries(value, meter);
      default:
    }
    if (value instanceof Failure) {
      this.#failure = value;
      return true;
    }
    const [first = ''] = names;
    switch (this.#name) {
      case 'existsOne':
        if (value === true) this.#count++;
        return false;
      case 'filter':
        if (value === true) this.#items.push(variables.get(first) ?? null);
        return false;
      case 'transformMap':
        this.#failure = insert(this.#entries, variables.get(first) ?? null, value);
        return this.#failure !== undefined;
      default:
        this.#items.push(value);
        return false;
    }
  }

  #addEntries(value: Result, meter: Meter): boolean {
    if (!isDictionary(value)) {
      this.#failure = value instanceof Failure ? value : NO_OVERLOAD;
      return true;
    }
    meter.spend(value.size);
    for (const key of value.keys()) {
      const member = value.get(key) ?? null;
      this.#failure = member instanceof Failure ? member : insert(this.#entries, key, member);
      if (this.#failure) return true;
    }
    return false;
  }

  result(range: List | Dictionary): Result {
    switch (this.#name) {
      case 'all':
      case 'exists':
        return this.#decided ?? this.#failure ?? this.#name === 'all';
      default:
    }
    if (this.#failure) return this.#failure;
    switch (this.#name) {
      case 'existsOne':
        return this.#count === 1;
      case 'transformMap':
      case 'transformMapEntry':
        return this.#entries;
      case 'sortBy':
        return range instanceof List ? sortBy(range, List.of(this.#items)) : NO_OVERLOAD;
      default:
        return List.of(this.#items);
    }
  }
}
