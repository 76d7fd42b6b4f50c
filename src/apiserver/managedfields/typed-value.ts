import { UNDECLARED, declaredField, fieldSchema, itemSchema } from '../../api/json-schema.ts';
import type { JsonSchema } from '../../api/json-schema.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { own, requireDepth, setOwn } from '../../util/json-value.ts';
import { isRecord } from '../../util/values.ts';
import type { PathElement } from './field-set.ts';
import {
  displayElement,
  fieldElement,
  keyElement,
  singleKeyElement,
  valueElement,
} from './field-set.ts';
import { andMore, goJson, goValue, listed } from '../../util/go-format.ts';
import { PatchError } from '../patch/json-patch.ts';

/** How the parts of a value are owned and merged, by its schema. */
export type Shape =
  /** As a whole: scalars and atomic lists and maps. */
  | { readonly kind: 'leaf' }
  /** By member. */
  | { readonly kind: 'map' }
  /** By value. */
  | { readonly kind: 'set' }
  /** By item, identified by the members `keys`. */
  | { readonly kind: 'keyed'; readonly keys: readonly string[] };

const LEAF: Shape = { kind: 'leaf' };
const MAP: Shape = { kind: 'map' };
const SET: Shape = { kind: 'set' };

/**
 * Returns the shape of `value`. A value that does not fit the type of its schema, such as `null`, has
 * the shape of that type.
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

export function isDeclared(schema: JsonSchema, name: string): boolean {
  return declaredField(schema, name) !== undefined;
}

/**
 * Returns the path element of an item in a list of this shape. Absent keys have their defaults.
 *
 * @returns undefined if the item has none of the keys, or is not a scalar in a set
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
  const [first = ''] = shape.keys;
  if (shape.keys.length === 1 && typeof own(item, first) === 'string') {
    return singleKeyElement(first, item[first]);
  }
  const key: JsonObject = {};
  for (const name of shape.keys) {
    const declared = declaredField(itemSchema(schema), name);
    const value = own(item, name) ?? declared?.default ?? declared?.zero;
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

/** The shape of a list of older built-in types, which declare only the strategic merge. */
function patchStrategyShape(schema: JsonSchema): Shape {
  const strategies = schema['x-kubernetes-patch-strategy']?.split(',') ?? [];
  if (!strategies.includes('merge')) return LEAF;
  const key = schema['x-kubernetes-patch-merge-key'];
  return key === undefined ? SET : { kind: 'keyed', keys: [key] };
}

/**
 * Checks that an applied object can be merged by its schema: no undeclared fields, values of the
 * declared types, items with unique keys.
 *
 * @param trying start of the message
 * @param isLive whether the object is stored, so that keys may be repeated
 * @throws {PatchError} `untyped`, with the object and all errors in the message
 * @throws {NestingError} if the object is nested too deeply
 */
export function requireTyped(
  object: JsonObject,
  schema: JsonSchema,
  trying: string = `failed to create typed patch object (${describe(object)}): `,
  isLive: boolean = false,
): void {
  const found: string[] = [];
  checkMembers(object, schema, false, () => '', found, 0);
  const faults = isLive ? found.filter((fault) => !fault.includes(DUPLICATE)) : found;
  if (faults.length === 0) return;
  const { texts, omitted } = listed(faults, (fault) => fault);
  const what =
    faults.length === 1 ? faults[0] : ['errors:', ...texts, ...andMore(omitted)].join('\n  ');
  throw new PatchError('untyped', `${trying}${what}`);
}

const DUPLICATE = ': duplicate entries for key ';

/** Returns the path of a value for messages, which few values need. */
type PathOf = () => string;

/** @param open whether this schema or one above preserves undeclared fields */
function check(
  value: unknown,
  schema: JsonSchema,
  open: boolean,
  path: PathOf,
  faults: string[],
  depth: number,
): void {
  if (value === null) return;
  requireDepth(depth);
  const expected = mismatch(value, schema);
  if (expected !== undefined) {
    faults.push(`${path()}: ${expected}`);
  } else if (isRecord(value)) {
    checkMembers(value, schema, open, path, faults, depth);
  } else if (Array.isArray(value)) {
    checkItems(value, schema, open, path, faults, depth);
  }
}

function checkMembers(
  object: JsonObject,
  schema: JsonSchema,
  above: boolean,
  path: PathOf,
  faults: string[],
  depth: number,
): void {
  const open = above || isOpen(schema);
  for (const [name, value] of Object.entries(object)) {
    const at = () => `${path()}${displayElement(fieldElement(name))}`;
    const field = fieldSchema(schema, name) ?? (open ? UNDECLARED : undefined);
    if (!field) {
      // As upstream, which reports one such field of an object.
      faults.push(`${at()}: field not declared in schema`);
      return;
    }
    check(value, field, open, at, faults, depth + 1);
  }
}

function checkItems(
  list: readonly unknown[],
  schema: JsonSchema,
  above: boolean,
  path: PathOf,
  faults: string[],
  depth: number,
): void {
  const open = above || schema['x-kubernetes-preserve-unknown-fields'] === true;
  const shape = shapeOf(list, schema);
  const seen = new Set<PathElement>();
  for (const [index, item] of list.entries()) {
    const element = shape.kind === 'leaf' ? undefined : itemElement(item, schema, shape);
    if (element === undefined && shape.kind !== 'leaf') {
      // As upstream, which does not check the rest of the list.
      faults.push(`${path()}: element ${index}: ${unidentified(item, shape)}`);
      return;
    }
    if (element !== undefined) {
      if (seen.has(element)) faults.push(`${path()}${DUPLICATE}${displayElement(element)}`);
      seen.add(element);
    }
    const at = () => `${path()}${element === undefined ? `[${index}]` : displayElement(element)}`;
    check(item, itemSchema(schema), open, at, faults, depth + 1);
  }
}

function mismatch(value: unknown, schema: JsonSchema): string | undefined {
  // As upstream, validation checks these values.
  if (schema['x-kubernetes-int-or-string']) return undefined;
  switch (schema.type) {
    case 'object':
      return isRecord(value) ? undefined : `expected map, got ${show(value)}`;
    case 'array':
      return Array.isArray(value) ? undefined : `expected list, got ${show(value)}`;
    case 'integer':
    case 'number':
      return typeof value === 'number'
        ? undefined
        : `expected numeric (int or float), got ${goTypeOf(value)}`;
    case 'boolean':
      return typeof value === 'boolean' ? undefined : `expected boolean, got ${show(value)}`;
    case 'string':
      if (schema.format && schema.format !== 'byte') {
        return typeof value === 'object' ? `expected any scalar, got ${show(value)}` : undefined;
      }
      return typeof value === 'string'
        ? undefined
        : `expected string, got &value.valueUnstructured{Value:${goSyntax(value)}}`;
    default:
      // A quantity.
      return schema.oneOf && !schema.format && typeof value === 'object'
        ? `expected any scalar, got ${show(value)}`
        : undefined;
  }
}

/** Whether a schema preserves undeclared members; an object type without any declaration does. */
function isOpen(schema: JsonSchema): boolean {
  return (
    schema['x-kubernetes-preserve-unknown-fields'] === true ||
    schema.additionalProperties === true ||
    (schema.additionalProperties === undefined && Object.keys(schema.properties ?? {}).length === 0)
  );
}

/** Returns why an item of a list has no path element. */
export function unidentified(item: unknown, shape: Shape): string {
  if (shape.kind !== 'keyed') {
    if (Array.isArray(item)) return 'not supported: associative list with lists as elements';
    const what = item === null ? 'an explicit null' : 'a map type';
    return `associative list without keys has an element that's ${what}`;
  }
  if (item === null) return 'associative list with keys may not have a null element';
  return isRecord(item)
    ? `associative list with keys has an element that omits all key fields ${goJson(shape.keys)} (and doesn't have default values for any key fields)`
    : 'associative list with keys may not have non-map elements';
}

function show(value: unknown): string {
  return `&{${goValue(value)}}`;
}

/** Formats a value like `%#v` of Go. */
function goSyntax(value: unknown): string {
  if (Array.isArray(value)) return `[]interface {}{${value.map(goSyntax).join(', ')}}`;
  if (!isRecord(value)) return value === null ? 'interface {}(nil)' : goJson(value);
  const members = Object.keys(value).sort();
  const texts = members.map((name) => `${goJson(name)}:${goSyntax(value[name])}`);
  return `map[string]interface {}{${texts.join(', ')}}`;
}

function goTypeOf(value: unknown): string {
  if (Array.isArray(value)) return '[]interface {}';
  if (isRecord(value)) return 'map[string]interface {}';
  return typeof value === 'boolean' ? 'bool' : typeof value;
}

/** Returns `namespace/name; group/version, Kind=Kind`. */
export function describe(object: JsonObject): string {
  const metadata = own(object, 'metadata');
  const text = (value: unknown) => (typeof value === 'string' ? value : '');
  const [namespace, name] = isRecord(metadata)
    ? [text(own(metadata, 'namespace')), text(own(metadata, 'name'))]
    : ['', ''];
  const apiVersion = text(own(object, 'apiVersion'));
  const groupVersion = apiVersion.includes('/') ? apiVersion : `/${apiVersion}`;
  return `${namespace}/${name}; ${groupVersion}, Kind=${text(own(object, 'kind'))}`;
}
