import type { JsonSchema } from '../../api/json-schema.ts';
import { declaredField } from '../../api/json-schema.ts';
import { CopyOnWrite, mapItems, requireDepth, setOwn } from '../../util/json-value.ts';
import { QUANTITY } from '../../api/formats.ts';
import { NumberText, withoutNumberTexts } from '../../util/number-text.ts';
import { isRecord } from '../../util/values.ts';
import type { JsonObject } from '../../util/json-value.ts';

interface PruneOptions {
  /** Schema of the `metadata` of embedded resources. Without it, their `metadata` is not pruned. */
  readonly metadata?: JsonSchema;
  /**
   * Returns the pruned `metadata` of an embedded resource as Go decodes it.
   *
   * @default unchanged
   */
  readonly decoded?: (metadata: JsonObject) => JsonObject;
}

/**
 * Removes the fields of `object` that `schema` does not declare. `apiVersion`, `kind` and `metadata`
 * of the object need no declaration. Returns the paths of the first 100 removed fields in the order of the object:
 * `spec.foo`, `spec.list[0].x`.
 *
 * Modifies only `object` itself. Values below it may be shared or frozen; pruned ones are replaced.
 *
 * @throws {NestingError} if the object is nested too deeply
 */
export function prune(
  object: JsonObject,
  schema: JsonSchema,
  options: PruneOptions = {},
): string[] {
  const { value, dropped } = pruneCopy(object, schema, options);
  if (value !== object) {
    for (const key of Object.keys(object)) {
      if (Object.hasOwn(value, key)) setOwn(object, key, value[key]);
      else delete object[key];
    }
  }
  return dropped;
}

/** Does the same as `prune` without a change of `object`. */
export function pruneCopy(
  object: JsonObject,
  schema: JsonSchema,
  options: PruneOptions = {},
): { readonly value: JsonObject; readonly dropped: string[] } {
  const pruning = new Pruning(options);
  const root = { ...schema, 'x-kubernetes-embedded-resource': true };
  return { value: pruning.object(object, root, ''), dropped: pruning.dropped };
}

/** Does the same for a value that is not the object itself. */
export function prunedValue(
  value: unknown,
  schema: JsonSchema,
  path: string,
): { readonly value: unknown; readonly dropped: string[] } {
  const pruning = new Pruning({});
  return { value: pruning.value(value, schema, path), dropped: pruning.dropped };
}

/** Returns the paths of the fields that pruning would remove from `value`, which is not modified. */
export function unknownFields(value: unknown, schema: JsonSchema): string[] {
  return prunedValue(value, schema, '').dropped.sort();
}

/**
 * Returns `schema` with pruned defaults: those of embedded resources and their metadata keep only the fields of
 * `metadata`, the schema of ObjectMeta.
 */
export function withPrunedDefaults(schema: JsonSchema, metadata: JsonSchema): JsonSchema {
  const pruning = new Pruning({ metadata });
  const walk = (node: JsonSchema, within: JsonSchema | undefined): JsonSchema => {
    const draft = new CopyOnWrite(node as JsonObject);
    if (node.default) draft.set('default', pruning.value(node.default, within ?? node, ''));
    if (node.items) draft.set('items', walk(node.items, within?.items));
    if (!node.properties) return draft.value;
    const properties = new CopyOnWrite(node.properties);
    for (const [name, field] of Object.entries(node.properties)) {
      const isMetadata = node['x-kubernetes-embedded-resource'] && name === 'metadata';
      const { default: _, ...bare } = field;
      const isUnknown = within !== undefined && !declaredField(within, name);
      const below = isMetadata ? metadata : within && declaredField(within, name);
      properties.set(name, isUnknown ? bare : walk(field, below));
    }
    draft.set('properties', properties.value);
    return draft.value;
  };
  return walk(schema, undefined);
}

/**
 * Maximum number of reported paths of one object, as in Go's decoder. An object of 3 MiB can have
 * 100,000 unknown fields, each with a path of 1 MiB.
 */
export const MAX_REPORTED: number = 100;

const TYPE_AND_OBJECT_META: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata']);

function below(path: string, key: string): string {
  return path ? `${path}.${key}` : key;
}

/**
 * Returns a number as Go decodes it to the type of a schema. Of an integer, the text remains, which the error shows.
 * Errors about other types do not show it.
 */
function decodedNumber(
  value: NumberText,
  { type, oneOf }: JsonSchema,
): string | number | NumberText {
  if (oneOf?.some(({ format }) => format === QUANTITY)) return value.text;
  const isInteger = type === 'integer' || oneOf?.some((each) => each.type === 'integer');
  return isInteger ? value : Number(value);
}

class Pruning {
  readonly dropped: string[] = [];
  readonly #metadata: JsonSchema | undefined;
  readonly #decoded: (metadata: JsonObject) => JsonObject;
  #depth = 0;

  constructor({ metadata, decoded = (unchanged) => unchanged }: PruneOptions) {
    this.#metadata = metadata;
    this.#decoded = decoded;
  }

  /** @param schema undefined if no field is declared */
  value(value: unknown, schema: JsonSchema | undefined, path: string): unknown {
    if (typeof value !== 'object' || value === null) return value;
    if (value instanceof NumberText) return decodedNumber(value, schema ?? {});
    requireDepth(++this.#depth);
    const pruned = isRecord(value)
      ? this.object(value, schema, path)
      : mapItems(value as unknown[], (item, index) => this.#item(item, schema, path, index));
    this.#depth--;
    return pruned;
  }

  #item(item: unknown, schema: JsonSchema | undefined, path: string, index: number): unknown {
    if (typeof item !== 'object' || item === null) return item;
    const at = `${path}[${index}]`;
    const items = schema?.items;
    if (!schema?.['x-kubernetes-preserve-unknown-fields']) return this.value(item, items, at);
    // A list that preserves unknown fields also preserves those of its items.
    if (!items) return item;
    return this.value(item, { ...items, 'x-kubernetes-preserve-unknown-fields': true }, at);
  }

  object(object: JsonObject, schema: JsonSchema | undefined, path: string): JsonObject {
    // The first change copies the members before it.
    let copy: JsonObject | undefined;
    const keys = Object.keys(object);
    const copied = (end: number) => {
      const result: JsonObject = {};
      for (const key of keys.slice(0, end)) setOwn(result, key, object[key]);
      return result;
    };
    for (const [index, key] of keys.entries()) {
      const value = object[key];
      const action = this.#field(schema, key);
      if (action === 'drop') {
        this.#drop(path, key);
        copy ??= copied(index);
        continue;
      }
      const isLeaf = typeof value !== 'object' || value === null;
      let left = value;
      if (!isLeaf) {
        left =
          action === 'keep'
            ? withoutNumberTexts(value)
            : this.value(value, action.schema, below(path, key));
      }
      if (action !== 'keep' && action.schema === this.#metadata && isRecord(left)) {
        left = this.#decoded(left);
      }
      if (left !== value) copy ??= copied(index);
      if (copy) setOwn(copy, key, left);
    }
    return copy ?? object;
  }

  #drop(path: string, key: string): void {
    if (this.dropped.length < MAX_REPORTED) this.dropped.push(below(path, key));
  }

  #field(
    schema: JsonSchema | undefined,
    key: string,
  ): 'keep' | 'drop' | { readonly schema: JsonSchema | undefined } {
    if (!schema) return 'drop';
    if (schema['x-kubernetes-embedded-resource'] && TYPE_AND_OBJECT_META.has(key)) {
      // The caller decodes the metadata of the object itself.
      const isEmbedded = key === 'metadata' && this.#depth > 0;
      return isEmbedded && this.#metadata ? { schema: this.#metadata } : 'keep';
    }
    const declared = declaredField(schema, key);
    if (declared) return { schema: declared };
    const { additionalProperties } = schema;
    if (typeof additionalProperties === 'object') return { schema: additionalProperties };
    if (schema['x-kubernetes-preserve-unknown-fields']) return 'keep';
    // `additionalProperties: true` declares all field names, but nothing below them.
    return additionalProperties === undefined ? 'drop' : { schema: undefined };
  }
}
