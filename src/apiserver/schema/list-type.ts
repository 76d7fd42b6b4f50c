import type { FieldError } from '../../api/field-error.ts';
import { fieldError, MAX_FIELD_ERRORS } from '../../api/field-error.ts';
import { goJson } from '../../util/go-format.ts';
import type { JsonSchema } from '../../api/json-schema.ts';
import { declaredField } from '../../api/json-schema.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { own, requireDepth, setOwn } from '../../util/json-value.ts';
import { isRecord } from '../../util/values.ts';

/**
 * Returns the violations of `x-kubernetes-list-type`: duplicate items of a set, duplicate keys of a
 * map. Each is reported once, at its second occurrence.
 */
export function validateListTypes(
  value: unknown,
  schema: JsonSchema,
  path: string,
): readonly FieldError[] {
  const errors: FieldError[] = [];
  walk(value, schema, path, errors, 0);
  return errors;
}

function walk(
  value: unknown,
  schema: JsonSchema,
  path: string,
  errors: FieldError[],
  depth: number,
): void {
  if (typeof value !== 'object' || value === null) return;
  if (errors.length >= MAX_FIELD_ERRORS) return;
  requireDepth(depth);
  if (Array.isArray(value)) {
    checkList(value, schema, path, errors);
    const { items } = schema;
    if (!items) return;
    for (let index = 0; index < value.length; index++) {
      if (typeof value[index] !== 'object') continue;
      walk(value[index], items, `${path}[${index}]`, errors, depth + 1);
    }
    return;
  }
  const { additionalProperties } = schema;
  for (const [key, member] of Object.entries(value)) {
    if (typeof member !== 'object') continue;
    if (typeof additionalProperties === 'object') {
      walk(member, additionalProperties, `${path}[${key}]`, errors, depth + 1);
    }
    const field = declaredField(schema, key);
    if (field) walk(member, field, path === '' ? key : `${path}.${key}`, errors, depth + 1);
  }
}

function checkList(
  list: readonly unknown[],
  schema: JsonSchema,
  path: string,
  errors: FieldError[],
): void {
  switch (schema['x-kubernetes-list-type']) {
    case 'set':
      for (const index of secondPlaces(list)) {
        errors.push(fieldError.duplicate(`${path}[${index}]`, list[index]));
      }
      return;
    case 'map':
      checkListMap(list, schema['x-kubernetes-list-map-keys'] ?? [], path, errors);
      return;
    default:
  }
}

function checkListMap(
  list: readonly unknown[],
  names: readonly string[],
  path: string,
  errors: FieldError[],
): void {
  const scalar = list.findIndex((item) => item !== null && !isRecord(item));
  if (scalar >= 0) {
    const detail = 'must be an object for an array of list-type map';
    errors.push(fieldError.invalid(`${path}[${scalar}]`, list[scalar], detail));
    return;
  }
  const key = (item: unknown) => keyOf(item, names);
  for (const index of secondPlaces(list, key)) {
    errors.push(fieldError.duplicate(`${path}[${index}]`, key(list[index])));
  }
}

function keyOf(item: unknown, names: readonly string[]): JsonObject {
  const key: JsonObject = {};
  if (!isRecord(item)) return key;
  for (const name of names) {
    if (Object.hasOwn(item, name)) setOwn(key, name, own(item, name));
  }
  return key;
}

/** Indices of the second occurrence of each `key`; by default the item itself is the key. */
function secondPlaces(
  list: readonly unknown[],
  key: (item: unknown) => unknown = (item) => item,
): number[] {
  if (list.length <= 1) return [];
  const seen = new Map<string, number>();
  const places: number[] = [];
  list.forEach((item, index) => {
    const text = goJson(key(item));
    const times = seen.get(text) ?? 0;
    if (times === 1 && places.length < MAX_FIELD_ERRORS) places.push(index);
    seen.set(text, times + 1);
  });
  return places;
}
