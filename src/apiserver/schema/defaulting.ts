import { oncePerObject } from '../../util/memo.ts';
import type { JsonSchema } from '../../api/json-schema.ts';
import { declaredField, fieldSchema } from '../../api/json-schema.ts';
import { CopyOnWrite, mapItems, requireDepth } from '../../util/json-value.ts';
import { isRecord } from '../../util/values.ts';
import type { JsonObject } from '../../util/json-value.ts';

/**
 * Returns `value` with the defaults of `schema`: for absent fields, and for `null` in fields that are
 * not nullable. A `null` that is neither allowed nor has a default is removed, unless `keepsNulls` is set.
 *
 * Returns `value` itself if nothing changes. The result shares unchanged parts with `value` and
 * defaults with the schema.
 *
 * @throws {NestingError} if the value is nested too deeply
 */
export function applyDefaults<T>(value: T, schema: JsonSchema, keepsNulls: boolean = false): T {
  return withDefaults(value, schema, keepsNulls, 0) as T;
}

function withDefaults(
  value: unknown,
  schema: JsonSchema,
  keepsNulls: boolean,
  depth: number,
): unknown {
  if (typeof value !== 'object' || value === null) return value;
  requireDepth(depth);
  if (isRecord(value)) return defaultedObject(value, schema, keepsNulls, depth + 1);
  const { items } = schema;
  if (!items) return value;
  return mapItems(value as unknown[], (item) =>
    withDefaults(
      item === null && !items.nullable && items.default !== undefined ? items.default : item,
      items,
      keepsNulls,
      depth + 1,
    ),
  );
}

function defaultedObject(
  object: JsonObject,
  schema: JsonSchema,
  keepsNulls: boolean,
  depth: number,
): JsonObject {
  const complete = (value: unknown, field: JsonSchema) =>
    withDefaults(value, field, keepsNulls, depth);
  const draft = new CopyOnWrite(object);
  for (const key of Object.keys(object)) {
    const value = object[key];
    if (typeof value !== 'object') continue;
    const field = fieldSchema(schema, key);
    if (!field) continue;
    if (value !== null || field.nullable) draft.set(key, complete(value, field));
    else if (field.default !== undefined) draft.set(key, complete(field.default, field));
    else if (!keepsNulls) draft.delete(key);
  }
  for (const key of schema.properties ? fieldsWithDefault(schema.properties) : []) {
    const field = declaredField(schema, key);
    if (!field || Object.hasOwn(object, key)) continue;
    draft.set(key, complete(field.default ?? null, field));
  }
  return draft.value;
}

/** The fields with a default, by `properties`. Schemas are immutable, and large ones have few defaults. */
const fieldsWithDefault = oncePerObject(
  (properties: NonNullable<JsonSchema['properties']>): readonly string[] =>
    Object.entries(properties)
      .filter(([, field]) => field.zero === null || (field.default ?? null) !== null)
      .map(([name]) => name),
);
