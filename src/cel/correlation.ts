import { equalJson } from '../api/equal.ts';
import { isRecord } from '../util/values.ts';
import { goJson } from '../util/go-format.ts';
import type { JsonSchema } from '../api/json-schema.ts';
import { fieldSchema } from '../api/json-schema.ts';
import { own } from '../util/json-value.ts';

/**
 * A value and its old value. Upstream: `CorrelatedObject`. Items can be correlated only in a list of
 * type map.
 */
export class Correlation {
  readonly #value: unknown;
  readonly #before: unknown;
  readonly #schema: JsonSchema;
  #unchanged: boolean | undefined;
  #items: ReadonlyMap<string | undefined, unknown> | undefined;

  constructor(value: unknown, before: unknown, schema: JsonSchema) {
    this.#value = value;
    this.#before = before;
    this.#schema = schema;
  }

  /** Returns undefined if the old value or the schema lacks the field. */
  field(name: string): Correlation | undefined {
    if (!isRecord(this.#value) || !isRecord(this.#before)) return undefined;
    const schema = fieldSchema(this.#schema, name);
    const [value, before] = [own(this.#value, name), own(this.#before, name)];
    return schema && value !== undefined && before !== undefined
      ? new Correlation(value, before, schema)
      : undefined;
  }

  item(index: number): Correlation | undefined {
    const { items } = this.#schema;
    if (!Array.isArray(this.#value) || !Array.isArray(this.#before) || !items) return undefined;
    if (this.#schema['x-kubernetes-list-type'] !== 'map') return undefined;
    this.#items ??= itemsByKey(this.#before, this.#schema);
    const item: unknown = this.#value[index];
    const before = this.#items.get(listMapKey(item, this.#schema));
    return before === undefined ? undefined : new Correlation(item, before, items);
  }

  /** Whether the value is unchanged. A list of type map may have another order. */
  get unchanged(): boolean {
    return (this.#unchanged ??= this.#compare());
  }

  #compare(): boolean {
    const [value, before] = [this.#value, this.#before];
    if (Array.isArray(value) && Array.isArray(before)) {
      if (this.#schema['x-kubernetes-list-type'] !== 'map') return equalJson(value, before);
      return (
        value.length === before.length &&
        value.every((_, index) => this.item(index)?.unchanged ?? false)
      );
    }
    if (isRecord(value) && isRecord(before)) {
      const keys = Object.keys(value);
      return (
        keys.length === Object.keys(before).length &&
        keys.every((key) => this.field(key)?.unchanged ?? false)
      );
    }
    return equalJson(value, before);
  }
}

/** Returns the items of a list of type map by their keys, without those that lack a key. */
export function itemsByKey(
  items: readonly unknown[],
  schema: JsonSchema,
): ReadonlyMap<string | undefined, unknown> {
  // As upstream, the first of several items with one key counts.
  const entries = items.map((item) => [listMapKey(item, schema), item] as const).reverse();
  return new Map(entries.filter(([key]) => key !== undefined));
}

/** Returns the values of the keys of an item, or undefined if one is absent or no scalar. */
export function listMapKey(item: unknown, schema: JsonSchema): string | undefined {
  if (!isRecord(item)) return undefined;
  const values = (schema['x-kubernetes-list-map-keys'] ?? []).map((key) => own(item, key) ?? {});
  return values.some((value) => typeof value === 'object') ? undefined : goJson(values);
}
