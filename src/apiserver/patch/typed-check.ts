import type { JsonSchema } from '../schema/json-schema.ts';
import { fieldSchema } from '../schema/json-schema.ts';
import type { JsonObject } from '../schema/json-value.ts';
import { goJson } from '../schema/go-format.ts';
import { own, requireDepth } from '../schema/json-value.ts';
import { isRecord } from '../../util/values.ts';
import { andMore, listed } from '../schema/listed.ts';
import { PatchError } from './patch-error.ts';
import type { PathElement } from './path-element.ts';
import { displayElement, fieldElement } from './path-element.ts';
import type { Shape } from './typed-value.ts';
import { UNDECLARED, itemElement, itemSchema, shapeOf } from './typed-value.ts';

/**
 * Checks that an applied object can be merged by its schema: no undeclared fields, values of the
 * declared types, items that can be told apart.
 *
 * @throws {PatchError} `untyped`, naming the object and everything that is wrong
 * @throws {NestingError} if the object is nested too deeply
 */
export function requireTyped(object: JsonObject, schema: JsonSchema): void {
  const faults: string[] = [];
  checkMembers(object, schema, false, '', faults, 0);
  if (faults.length === 0) return;
  const { texts, omitted } = listed(faults, (fault) => fault);
  const what =
    faults.length === 1 ? faults[0] : ['errors:', ...texts, ...andMore(omitted)].join('\n  ');
  throw new PatchError(
    'untyped',
    `failed to create typed patch object (${describe(object)}): ${what}`,
  );
}

/** @param open whether undeclared fields are data: by this schema, or by one above */
function check(
  value: unknown,
  schema: JsonSchema,
  open: boolean,
  path: string,
  faults: string[],
  depth: number,
): void {
  if (value === null) return;
  requireDepth(depth);
  const expected = mismatch(value, schema);
  if (expected !== undefined) {
    faults.push(`${path}: ${expected}`);
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
  path: string,
  faults: string[],
  depth: number,
): void {
  const open = above || isOpen(schema);
  for (const [name, value] of Object.entries(object)) {
    const at = `${path}${displayElement(fieldElement(name))}`;
    const field = fieldSchema(schema, name) ?? (open ? UNDECLARED : undefined);
    if (field) check(value, field, open, at, faults, depth + 1);
    else faults.push(`${at}: field not declared in schema`);
  }
}

function checkItems(
  list: readonly unknown[],
  schema: JsonSchema,
  above: boolean,
  path: string,
  faults: string[],
  depth: number,
): void {
  const open = above || schema['x-kubernetes-preserve-unknown-fields'] === true;
  const shape = shapeOf(list, schema);
  const seen = new Set<PathElement>();
  for (const [index, item] of list.entries()) {
    let at = `${path}[${index}]`;
    if (shape.kind !== 'leaf') {
      const element = itemElement(item, schema, shape);
      if (element === undefined) {
        faults.push(`${path}: element ${index}: ${unidentified(shape)}`);
        continue;
      }
      at = `${path}${displayElement(element)}`;
      if (seen.has(element)) {
        faults.push(`${path}: duplicate entries for key ${displayElement(element)}`);
      }
      seen.add(element);
    }
    check(item, itemSchema(schema), open, at, faults, depth + 1);
  }
}

function mismatch(value: unknown, schema: JsonSchema): string | undefined {
  if (schema['x-kubernetes-int-or-string']) {
    return typeof value === 'object' ? `expected any scalar, got ${show(value)}` : undefined;
  }
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
      return typeof value === 'string' ? undefined : `expected string, got ${show(value)}`;
    default:
      return undefined;
  }
}

/** An object type that declares nothing leaves its members open. */
function isOpen(schema: JsonSchema): boolean {
  return (
    schema['x-kubernetes-preserve-unknown-fields'] === true ||
    schema.additionalProperties === true ||
    (schema.additionalProperties === undefined && Object.keys(schema.properties ?? {}).length === 0)
  );
}

function unidentified(shape: Shape): string {
  return shape.kind === 'keyed'
    ? `associative list with keys has an element that omits all key fields ${goJson(shape.keys)} (and doesn't have default values for any key fields)`
    : 'associative list without keys has an element that is no scalar';
}

function show(value: unknown): string {
  return `&{${typeof value === 'string' ? value : goJson(value)}}`;
}

function goTypeOf(value: unknown): string {
  if (Array.isArray(value)) return '[]interface {}';
  if (isRecord(value)) return 'map[string]interface {}';
  return typeof value === 'boolean' ? 'bool' : typeof value;
}

/** `namespace/name; group/version, Kind=Kind` */
function describe(object: JsonObject): string {
  const metadata = own(object, 'metadata');
  const text = (value: unknown) => (typeof value === 'string' ? value : '');
  const [namespace, name] = isRecord(metadata)
    ? [text(own(metadata, 'namespace')), text(own(metadata, 'name'))]
    : ['', ''];
  const apiVersion = text(own(object, 'apiVersion'));
  const groupVersion = apiVersion.includes('/') ? apiVersion : `/${apiVersion}`;
  return `${namespace}/${name}; ${groupVersion}, Kind=${text(own(object, 'kind'))}`;
}
