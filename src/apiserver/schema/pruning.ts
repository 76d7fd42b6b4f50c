import type { JsonSchema } from './json-schema.ts';
import { declaredField } from './json-schema.ts';
import { Draft, mapItems, requireDepth, setOwn } from './json-value.ts';
import { isRecord } from '../../util/values.ts';
import type { JsonObject } from './json-value.ts';

interface PruneOptions {
  /**
   * Schema of ObjectMeta. With it, `metadata` of the object and of embedded resources is pruned
   * too; without it, whatever is in there stays.
   */
  readonly metadata?: JsonSchema;
}

/**
 * Drops the fields of `object` that `schema` does not declare, and returns the paths of the first 100
 * in order: `spec.foo`, `spec.list[0].x`. `apiVersion`, `kind` and `metadata` of the object need no
 * declaration.
 *
 * Changes `object`, but nothing below it: what is below may be shared or frozen, and is replaced
 * where something in it is dropped.
 *
 * @throws {NestingError} if the object is nested too deeply
 */
export function prune(
  object: JsonObject,
  schema: JsonSchema,
  options: PruneOptions = {},
): string[] {
  const pruning = new Pruning(options);
  const pruned = pruning.object(object, { ...schema, 'x-kubernetes-embedded-resource': true }, '');
  if (pruned !== object) {
    for (const key of Object.keys(object)) {
      if (Object.hasOwn(pruned, key)) setOwn(object, key, pruned[key]);
      else delete object[key];
    }
  }
  return pruning.dropped.sort();
}

/** The paths of what pruning `value` would drop. Nothing is changed. */
export function unknownFields(value: unknown, schema: JsonSchema): string[] {
  const pruning = new Pruning({});
  pruning.value(value, schema, '');
  return pruning.dropped.sort();
}

/**
 * Paths that are reported of one object, as many as Go's decoder reports: an object of 3 MiB can have
 * 100,000 unknown fields, each at a path of 1 MiB.
 */
export const MAX_REPORTED: number = 100;

const TYPE_AND_OBJECT_META: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata']);

class Pruning {
  readonly dropped: string[] = [];
  readonly #metadata: JsonSchema | undefined;
  #depth = 0;

  constructor(options: PruneOptions) {
    this.#metadata = options.metadata;
  }

  /** `schema` is undefined where no field is declared at all. */
  value(value: unknown, schema: JsonSchema | undefined, path: string): unknown {
    if (typeof value !== 'object' || value === null) return value;
    requireDepth(++this.#depth);
    const pruned = isRecord(value)
      ? this.object(value, schema, path)
      : mapItems(value as unknown[], (item, index) => this.#item(item, schema, path, index));
    this.#depth--;
    return pruned;
  }

  #item(item: unknown, schema: JsonSchema | undefined, path: string, index: number): unknown {
    const at = `${path}[${index}]`;
    const items = schema?.items;
    if (!schema?.['x-kubernetes-preserve-unknown-fields']) return this.value(item, items, at);
    // An open list opens its items; without a schema for them, everything is kept.
    if (!items) return item;
    return this.value(item, { ...items, 'x-kubernetes-preserve-unknown-fields': true }, at);
  }

  object(object: JsonObject, schema: JsonSchema | undefined, path: string): JsonObject {
    const draft = new Draft(object);
    for (const [key, value] of Object.entries(object)) {
      const at = path ? `${path}.${key}` : key;
      const fate = this.#field(schema, key);
      if (fate === 'keep') continue;
      if (fate === 'drop') {
        if (this.dropped.length < MAX_REPORTED) this.dropped.push(at);
        draft.delete(key);
      } else {
        draft.set(key, this.value(value, fate.schema, at));
      }
    }
    return draft.value;
  }

  #field(
    schema: JsonSchema | undefined,
    key: string,
  ): 'keep' | 'drop' | { readonly schema: JsonSchema | undefined } {
    if (!schema) return 'drop';
    if (schema['x-kubernetes-embedded-resource'] && TYPE_AND_OBJECT_META.has(key)) {
      return key === 'metadata' && this.#metadata ? { schema: this.#metadata } : 'keep';
    }
    const declared = declaredField(schema, key);
    if (declared) return { schema: declared };
    const { additionalProperties } = schema;
    if (typeof additionalProperties === 'object') return { schema: additionalProperties };
    if (schema['x-kubernetes-preserve-unknown-fields']) return 'keep';
    // `additionalProperties: true` declares the names of fields, and nothing below them.
    return additionalProperties === undefined ? 'drop' : { schema: undefined };
  }
}
