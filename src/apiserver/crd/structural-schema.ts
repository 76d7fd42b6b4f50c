import { equalJson } from '../../api/equal.ts';
import type { FieldError } from '../../api/field-error.ts';
import { formatFieldError } from '../../api/field-error.ts';
import type { CheckSteps } from '../objects/check-steps.ts';
import { PART_WEIGHT } from '../objects/check-steps.ts';
import { CheckedObject, stepsUntilTooMany } from '../objects/checked-object.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { objectIn, objectsIn, own, requireDepth, textIn } from '../../util/json-value.ts';
import { pattern } from '../../cel/values/pattern.ts';
import { oncePerObject } from '../../util/memo.ts';
import { isRecord } from '../../util/values.ts';

/**
 * Checks that the schema of a custom resource is structural: every field has one type, declared
 * outside of `allOf`, `anyOf`, `oneOf` and `not`, which may only restrict values. Pruning and
 * defaulting require this. Returns the errors.
 *
 * @throws {NestingError} if the schema is nested too deeply
 */
export function* checkStructural(schema: JsonObject, path: string): CheckSteps<FieldError[]> {
  const root = new CheckedObject(schema, path);
  yield* stepsUntilTooMany(checkAll(root));
  return root.errors.sort((a, b) => (formatFieldError(a) < formatFieldError(b) ? -1 : 1));
}

function* checkAll(root: CheckedObject): CheckSteps {
  yield* checkNode(root, 'root', 0);
  checkComplete(root, root, 0);
}

/** Keywords of JSON Schema that Kubernetes does not support. */
export const UNSUPPORTED: readonly string[] = [
  'id',
  'additionalItems',
  'patternProperties',
  'definitions',
  'dependencies',
  '$ref',
];

/** Whether a schema has none of these keywords, and a schema for the items of each list. */
export function isConvertible(schema: Readonly<JsonObject>): boolean {
  const { items, additionalProperties, not } = schema;
  if (Array.isArray(items) || UNSUPPORTED.some((key) => isNonZero(own(schema, key)))) return false;
  // Without lists of all parts, because their number is not limited.
  return (
    [items, additionalProperties, not].every((part) => !isRecord(part) || isConvertible(part)) &&
    ['allOf', 'anyOf', 'oneOf'].every((key) => objectsIn(schema, key).every(isConvertible)) &&
    propertiesOf(schema).every(([, field]) => isConvertible(field))
  );
}

type Level = 'root' | 'item' | 'field';

const MUST_NOT_BE_EMPTY: Readonly<Record<Level, string>> = {
  root: 'must not be empty at the root',
  item: 'must not be empty for specified array items',
  field: 'must not be empty for specified object fields',
};

const META_TYPES: ReadonlyMap<string, string> = new Map([
  ['kind', 'string'],
  ['apiVersion', 'string'],
  ['metadata', 'object'],
]);

/** What may not be said within `allOf`, `anyOf`, `oneOf` and `not`. */
const FORBIDDEN_NESTED: readonly (readonly [key: string, detail: string])[] = [
  ['type', 'must be empty to be structural'],
  ['additionalProperties', 'must be undefined to be structural'],
  ['default', 'must be undefined to be structural'],
  ['title', 'must be empty to be structural'],
  ['description', 'must be empty to be structural'],
  ['nullable', 'must be false to be structural'],
  ['x-kubernetes-preserve-unknown-fields', 'must be false to be structural'],
  ['x-kubernetes-embedded-resource', 'must be false to be structural'],
  ['x-kubernetes-int-or-string', 'must be false to be structural'],
  ['x-kubernetes-list-map-keys', 'must be empty to be structural'],
  ['x-kubernetes-list-type', 'must be undefined to be structural'],
  ['x-kubernetes-map-type', 'must be undefined to be structural'],
  ['x-kubernetes-validations', 'must be empty to be structural'],
];

function* checkNode(schema: CheckedObject, level: Level, depth: number): CheckSteps {
  requireDepth(depth);
  yield PART_WEIGHT;
  const items = schema.get('items');
  if (schema.text('type') === 'array' && !items) schema.required('items', 'must be specified');
  if (items) yield* checkNode(items, 'item', depth + 1);
  for (const [, field] of schemaFieldsOf(schema)) yield* checkNode(field, 'field', depth + 1);
  const values = schema.get('additionalProperties');
  if (schema.value['additionalProperties'] !== undefined && level === 'root') {
    schema.forbidden('additionalProperties', 'must not be used at the root');
  }
  if (values) yield* checkNode(values, 'field', depth + 1);
  checkExtensions(schema);
  const [isAnyOf, isAllOf] = [isIntOrStringAnyOf(schema.value), isIntOrStringAllOf(schema.value)];
  checkValueValidation(schema, isAnyOf, isAllOf, depth);
  checkType(schema, level);
  checkMetaProperties(schema, level);
}

function checkType(schema: CheckedObject, level: Level): void {
  const type = schema.text('type');
  const embedded = flag(schema.value, 'x-kubernetes-embedded-resource');
  const open = flag(schema.value, 'x-kubernetes-preserve-unknown-fields');
  if (embedded && type !== 'object') {
    const detail = 'must be object if x-kubernetes-embedded-resource is true';
    if (type) schema.invalid('type', detail);
    else schema.required('type', detail);
  } else if (!type && !flag(schema.value, 'x-kubernetes-int-or-string') && !open) {
    schema.required('type', MUST_NOT_BE_EMPTY[level]);
  }
  if (embedded && schema.value['additionalProperties'] !== undefined) {
    const detail = 'must not be used if x-kubernetes-embedded-resource is set';
    schema.forbidden('additionalProperties', detail);
  }
  if (embedded && !open && schemaFieldsOf(schema).length === 0) {
    const detail =
      'must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields';
    schema.required('properties', detail);
  }
  if (level === 'root' && type && type !== 'object') {
    schema.invalid('type', 'must be object at the root');
  }
}

/** Checks the schemas of `apiVersion`, `kind` and `metadata`, which may restrict hardly anything. */
function checkMetaProperties(schema: CheckedObject, level: Level): void {
  if (level !== 'root' && !flag(schema.value, 'x-kubernetes-embedded-resource')) return;
  for (const [name, field] of schemaFieldsOf(schema)) {
    const expected = META_TYPES.get(name);
    const type = field.text('type');
    if (expected && type !== expected) field.invalid('type', `must be ${expected}`, type);
    if (name === 'metadata' && level === 'root' && !restrictsNameOnly(field.value)) {
      const detail =
        'must not specify anything other than name and generateName, but metadata is implicitly specified';
      field.forbidden('', detail);
    }
  }
}

function checkExtensions(schema: CheckedObject): void {
  if (!flag(schema.value, 'x-kubernetes-int-or-string')) return;
  for (const name of ['x-kubernetes-preserve-unknown-fields', 'x-kubernetes-embedded-resource']) {
    if (!flag(schema.value, name)) continue;
    schema.invalid(name, 'must be false if x-kubernetes-int-or-string is true');
  }
}

function checkValueValidation(
  schema: CheckedObject,
  skipAnyOf: boolean,
  skipFirstAllOf: boolean,
  depth: number,
): void {
  if (!skipAnyOf) {
    for (const branch of schema.items('anyOf')) checkNested(branch, false, depth + 1);
  }
  for (const [index, branch] of schema.items('allOf').entries()) {
    checkNested(branch, skipFirstAllOf && index === 0, depth + 1);
  }
  for (const branch of schema.items('oneOf')) checkNested(branch, false, depth + 1);
  const not = schema.get('not');
  if (not) checkNested(not, false, depth + 1);
  const source = schema.text('pattern');
  if (source === '') return;
  const compiled = pattern(source);
  if ('error' in compiled) {
    const detail = `must be a valid regular expression, but isn't: ${compiled.error}`;
    schema.invalid('pattern', detail);
  }
}

function checkNested(schema: CheckedObject, skipAnyOf: boolean, depth: number): void {
  requireDepth(depth);
  checkValueValidation(schema, skipAnyOf, false, depth);
  const items = schema.get('items');
  if (items) checkNested(items, false, depth + 1);
  for (const [name, field] of schemaFieldsOf(schema)) {
    checkNested(field, false, depth + 1);
    if (name === 'metadata') field.forbidden('', 'must not be specified in a nested context');
  }
  for (const [key, detail] of FORBIDDEN_NESTED) {
    if (isNonZero(own(schema.value, key))) schema.forbidden(key, detail);
  }
}

/**
 * Checks that the fields in value validations (`allOf`, `anyOf`, `oneOf`, `not`) are declared
 * outside of them.
 */
function checkComplete(validation: CheckedObject, structural: CheckedObject, depth: number): void {
  requireDepth(depth);
  const not = validation.get('not');
  if (not) checkBranch(not, structural, depth + 1);
  for (const key of ['allOf', 'anyOf', 'oneOf'] as const) {
    for (const branch of validation.items(key)) checkBranch(branch, structural, depth + 1);
  }
}

function checkBranch(validation: CheckedObject, structural: CheckedObject, depth: number): void {
  checkComplete(validation, structural, depth);
  const compare = (inner: CheckedObject, declared: CheckedObject | undefined, field: string) => {
    if (declared) checkBranch(inner, declared, depth + 1);
    else structural.required(field, `because it is defined in ${inner.path}`);
  };
  const items = validation.get('items');
  if (items) compare(items, structural.get('items'), 'items');
  const declared = new Map(schemaFieldsOf(structural));
  for (const [name, field] of schemaFieldsOf(validation)) {
    compare(field, declared.get(name), `properties[${name}]`);
  }
}

function restrictsNameOnly(metadata: Readonly<JsonObject>): boolean {
  const restricted = propertiesOf(metadata).map(([name]) => name);
  return (
    restricted.every((name) => name === 'name' || name === 'generateName') &&
    Object.entries(metadata).every(
      ([key, value]) => ['type', 'properties', 'default'].includes(key) || !isNonZero(value),
    )
  );
}

const INT_OR_STRING = [{ type: 'integer' }, { type: 'string' }];

function isIntOrStringAnyOf(schema: Readonly<JsonObject>): boolean {
  return equalJson(own(schema, 'anyOf'), INT_OR_STRING);
}

function isIntOrStringAllOf(schema: Readonly<JsonObject>): boolean {
  const first = objectsIn(schema, 'allOf')[0];
  return first !== undefined && isIntOrStringAnyOf(first);
}

export function propertyPath(path: string, name: string): string {
  return `${path}.properties[${name}]`;
}

/** Returns the schemas of declared fields of an unvalidated schema. */
export function propertiesOf(
  schema: Readonly<JsonObject>,
): readonly (readonly [name: string, schema: JsonObject])[] {
  const properties = objectIn(schema, 'properties');
  return properties ? fieldsOf(properties) : [];
}

/** Each check of a schema needs them again. */
const fieldsOf = oncePerObject((properties: Readonly<JsonObject>) =>
  Object.entries(properties).filter((entry): entry is [string, JsonObject] => isRecord(entry[1])),
);

/** Returns the schemas of declared fields with their paths. */
export function schemaFieldsOf(schema: CheckedObject): [name: string, schema: CheckedObject][] {
  return propertiesOf(schema.value).map(([name, field]) => [
    name,
    new CheckedObject(field, propertyPath(schema.path, name), schema.errors),
  ]);
}

export function schemaTypeOf(schema: Readonly<JsonObject>): string {
  return textIn(schema, 'type');
}

export function flag(schema: Readonly<JsonObject>, name: string): boolean {
  return own(schema, name) === true;
}

/** Whether a value differs from the zero value of its Go field. */
export function isNonZero(value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === '') return false;
  return !Array.isArray(value) || value.length > 0;
}
