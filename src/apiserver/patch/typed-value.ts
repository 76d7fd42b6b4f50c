import { declaredField, fieldSchema } from '../schema/json-schema.ts';
import type { JsonSchema } from '../schema/json-schema.ts';
import type { JsonObject } from '../schema/json-value.ts';
import { own, setOwn } from '../schema/json-value.ts';
import { isRecord } from '../../util/values.ts';
import type { PathElement } from './path-element.ts';
import { keyElement, valueElement } from './path-element.ts';

/** How the parts of a value are owned and merged. */
export type Shape =
  /** As a whole: scalars, and what is declared atomic. */
  | { readonly kind: 'leaf' }
  /** Member by member. */
  | { readonly kind: 'map' }
  /** Value by value. */
  | { readonly kind: 'set' }
  /** Item by item, told apart by the members `keys`. */
  | { readonly kind: 'keyed'; readonly keys: readonly string[] };

/** Of what no schema declares: objects are merged by member, lists are atomic. */
export const UNDECLARED: JsonSchema = { 'x-kubernetes-preserve-unknown-fields': true };

const LEAF: Shape = { kind: 'leaf' };
const MAP: Shape = { kind: 'map' };
const SET: Shape = { kind: 'set' };

/**
 * The shape that `schema` gives `value`. A value that does not fit its type (`null` among them) has
 * the shape of what should be there.
 */
export function shapeOf(value: unknown, schema: JsonSchema): Shape {
  switch (schema.type) {
    case 'object':
      return mapShape(schema);
    case 'array':
      return listShape(schema);
    case undefined:
    case '':
      if (schema['x-kubernetes-int-or-string']) return LEAF;
      if (Array.isArray(value)) return listShape(schema);
      return isRecord(value) || value === null ? mapShape(schema) : LEAF;
    default:
      return LEAF;
  }
}

/** The schema of a member, whether declared or not. */
export function memberSchema(schema: JsonSchema, name: string): JsonSchema {
  return fieldSchema(schema, name) ?? UNDECLARED;
}

export function itemSchema(schema: JsonSchema): JsonSchema {
  return schema.items ?? UNDECLARED;
}

export function isDeclared(schema: JsonSchema, name: string): boolean {
  return declaredField(schema, name) !== undefined;
}

/**
 * The path element of an item in a list of this shape. A key that the item lacks is taken from its
 * default, if there is one.
 *
 * @returns undefined if the item cannot be told from others: it has none of the keys, or is no
 *   scalar in a set
 */
export function itemElement(
  item: unknown,
  schema: JsonSchema,
  shape: Shape,
): PathElement | undefined {
  if (shape.kind === 'set') {
    return typeof item === 'object' || item === undefined ? undefined : valueElement(item);
  }
  if (shape.kind !== 'keyed' || !isRecord(item)) return undefined;
  const key: JsonObject = {};
  for (const name of shape.keys) {
    const value = own(item, name) ?? declaredField(itemSchema(schema), name)?.default;
    if (value !== undefined && value !== null) setOwn(key, name, value);
  }
  return Object.keys(key).length === 0 ? undefined : keyElement(key);
}

function mapShape(schema: JsonSchema): Shape {
  return schema['x-kubernetes-map-type'] === 'atomic' ? LEAF : MAP;
}

function listShape(schema: JsonSchema): Shape {
  switch (schema['x-kubernetes-list-type']) {
    case 'set':
      return SET;
    case 'map':
      return { kind: 'keyed', keys: schema['x-kubernetes-list-map-keys'] ?? [] };
    case 'atomic':
      return LEAF;
    default:
      return patchStrategyShape(schema);
  }
}

/** Older built-in types say only how a strategic merge patch merges them. */
function patchStrategyShape(schema: JsonSchema): Shape {
  const strategies = schema['x-kubernetes-patch-strategy']?.split(',') ?? [];
  if (!strategies.includes('merge')) return LEAF;
  const key = schema['x-kubernetes-patch-merge-key'];
  return key === undefined ? SET : { kind: 'keyed', keys: [key] };
}
