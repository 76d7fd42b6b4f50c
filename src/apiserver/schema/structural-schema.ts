import { equalJson } from '../../api/equal.ts';
import type { FieldError } from '../../api/field-error.ts';
import { fieldError, formatFieldError } from '../../api/field-error.ts';
import type { JsonObject } from './json-value.ts';
import { own, requireDepth } from './json-value.ts';
import { pattern } from './pattern.ts';
import { isRecord } from '../../util/values.ts';

/**
 * Checks that the schema of a custom resource is structural: every field has one type, declared
 * outside of `allOf`, `anyOf`, `oneOf` and `not`, which may only restrict values. Pruning and
 * defaulting require this. Returns the errors.
 *
 * @throws {NestingError} if the schema is nested too deeply
 */
export function checkStructural(schema: JsonObject, path: string): FieldError[] {
  const errors: FieldError[] = [];
  checkNode(schema, 'root', path, errors, 0);
  checkComplete(schema, path, errors);
  return errors.sort((a, b) => (formatFieldError(a) < formatFieldError(b) ? -1 : 1));
}

type Level = 'root' | 'item' | 'field';

const MUST_NOT_BE_EMPTY: Readonly<Record<Level, string>> = {
  root: 'must not be empty at the root',
  item: 'must not be empty for specified array items',
  field: 'must not be empty for specified object fields',
};

function checkNode(
  schema: JsonObject,
  level: Level,
  path: string,
  errors: FieldError[],
  depth: number,
): void {
  requireDepth(depth);
  const type = typeOf(schema);
  const items = subschema(schema, 'items');
  if (type === 'array' && !items) {
    errors.push(fieldError.required(`${path}.items`, 'must be specified'));
  }
  if (items) checkNode(items, 'item', `${path}.items`, errors, depth + 1);
  for (const [name, field] of propertiesOf(schema)) {
    checkNode(field, 'field', propertyPath(path, name), errors, depth + 1);
  }
  if (own(schema, 'additionalProperties') !== undefined && level === 'root') {
    errors.push(
      fieldError.forbidden(`${path}.additionalProperties`, 'must not be used at the root'),
    );
  }
  const values = subschema(schema, 'additionalProperties');
  if (values) checkNode(values, 'field', `${path}.additionalProperties`, errors, depth + 1);
  checkExtensions(schema, path, errors);
  checkValueValidation(
    schema,
    isIntOrStringAnyOf(schema),
    isIntOrStringAllOf(schema),
    path,
    errors,
    depth,
  );
  checkType(schema, level, path, errors);
  checkMetaProperties(schema, level, path, errors);
}

function checkType(schema: JsonObject, level: Level, path: string, errors: FieldError[]): void {
  const at = `${path}.type`;
  const type = typeOf(schema);
  const embedded = flag(schema, 'x-kubernetes-embedded-resource');
  const open = flag(schema, 'x-kubernetes-preserve-unknown-fields');
  if (embedded && type !== 'object') {
    const detail = 'must be object if x-kubernetes-embedded-resource is true';
    errors.push(type ? fieldError.invalid(at, type, detail) : fieldError.required(at, detail));
  } else if (!type && !flag(schema, 'x-kubernetes-int-or-string') && !open) {
    errors.push(fieldError.required(at, MUST_NOT_BE_EMPTY[level]));
  }
  if (embedded && own(schema, 'additionalProperties') !== undefined) {
    const detail = 'must not be used if x-kubernetes-embedded-resource is set';
    errors.push(fieldError.forbidden(`${path}.additionalProperties`, detail));
  }
  if (embedded && !open && propertiesOf(schema).length === 0) {
    const detail =
      'must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields';
    errors.push(fieldError.required(`${path}.properties`, detail));
  }
  if (level === 'root' && type && type !== 'object') {
    errors.push(fieldError.invalid(at, type, 'must be object at the root'));
  }
}

/** Checks the schemas of `apiVersion`, `kind` and `metadata`, which may restrict hardly anything. */
function checkMetaProperties(
  schema: JsonObject,
  level: Level,
  path: string,
  errors: FieldError[],
): void {
  if (level !== 'root' && !flag(schema, 'x-kubernetes-embedded-resource')) return;
  for (const [name, field] of propertiesOf(schema)) {
    const expected = META_TYPES.get(name);
    const at = propertyPath(path, name);
    if (expected && typeOf(field) !== expected) {
      errors.push(fieldError.invalid(`${at}.type`, typeOf(field), `must be ${expected}`));
    }
    if (name === 'metadata' && level === 'root' && !restrictsNameOnly(field)) {
      const detail =
        'must not specify anything other than name and generateName, but metadata is implicitly specified';
      errors.push(fieldError.forbidden(at, detail));
    }
  }
}

const META_TYPES: ReadonlyMap<string, string> = new Map([
  ['kind', 'string'],
  ['apiVersion', 'string'],
  ['metadata', 'object'],
]);

function restrictsNameOnly(metadata: JsonObject): boolean {
  const restricted = propertiesOf(metadata).map(([name]) => name);
  return (
    restricted.every((name) => name === 'name' || name === 'generateName') &&
    Object.entries(metadata).every(
      ([key, value]) => ['type', 'properties', 'default'].includes(key) || !isSet(value),
    )
  );
}

function checkExtensions(schema: JsonObject, path: string, errors: FieldError[]): void {
  if (!flag(schema, 'x-kubernetes-int-or-string')) return;
  for (const name of ['x-kubernetes-preserve-unknown-fields', 'x-kubernetes-embedded-resource']) {
    if (flag(schema, name)) {
      const detail = 'must be false if x-kubernetes-int-or-string is true';
      errors.push(fieldError.invalid(`${path}.${name}`, true, detail));
    }
  }
}

function checkValueValidation(
  schema: JsonObject,
  skipAnyOf: boolean,
  skipFirstAllOf: boolean,
  path: string,
  errors: FieldError[],
  depth: number,
): void {
  const nested = (branch: JsonObject, skip: boolean, at: string) =>
    checkNested(branch, skip, at, errors, depth + 1);
  if (!skipAnyOf) {
    branchesOf(schema, 'anyOf').forEach((branch, i) =>
      nested(branch, false, `${path}.anyOf[${i}]`),
    );
  }
  branchesOf(schema, 'allOf').forEach((branch, i) =>
    nested(branch, skipFirstAllOf && i === 0, `${path}.allOf[${i}]`),
  );
  branchesOf(schema, 'oneOf').forEach((branch, i) => nested(branch, false, `${path}.oneOf[${i}]`));
  const not = subschema(schema, 'not');
  if (not) nested(not, false, `${path}.not`);
  const source = own(schema, 'pattern');
  if (typeof source === 'string' && source !== '') {
    const compiled = pattern(source);
    if ('error' in compiled) {
      const detail = `must be a valid regular expression, but isn't: ${compiled.error}`;
      errors.push(fieldError.invalid(`${path}.pattern`, source, detail));
    }
  }
}

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

function checkNested(
  schema: JsonObject,
  skipAnyOf: boolean,
  path: string,
  errors: FieldError[],
  depth: number,
): void {
  requireDepth(depth);
  checkValueValidation(schema, skipAnyOf, false, path, errors, depth);
  const items = subschema(schema, 'items');
  if (items) checkNested(items, false, `${path}.items`, errors, depth + 1);
  for (const [name, field] of propertiesOf(schema)) {
    checkNested(field, false, propertyPath(path, name), errors, depth + 1);
    if (name === 'metadata') {
      const detail = 'must not be specified in a nested context';
      errors.push(fieldError.forbidden(propertyPath(path, name), detail));
    }
  }
  for (const [key, detail] of FORBIDDEN_NESTED) {
    if (isSet(own(schema, key))) errors.push(fieldError.forbidden(`${path}.${key}`, detail));
  }
}

const INT_OR_STRING = [{ type: 'integer' }, { type: 'string' }];

function isIntOrStringAnyOf(schema: JsonObject): boolean {
  return equalJson(own(schema, 'anyOf'), INT_OR_STRING);
}

function isIntOrStringAllOf(schema: JsonObject): boolean {
  const first = branchesOf(schema, 'allOf')[0];
  return first !== undefined && isIntOrStringAnyOf(first);
}

/**
 * Checks that the fields in value validations (`allOf`, `anyOf`, `oneOf`, `not`) are declared
 * outside of them.
 */
function checkComplete(schema: JsonObject, path: string, errors: FieldError[]): void {
  checkBranches(schema, schema, path, path, errors, 0);
}

/**
 * @param at path of `structural`
 * @param from path of `validation`
 */
function checkBranches(
  validation: JsonObject,
  structural: JsonObject,
  at: string,
  from: string,
  errors: FieldError[],
  depth: number,
): void {
  requireDepth(depth);
  const nested = (branch: JsonObject, where: string) =>
    checkBranch(branch, structural, at, where, errors, depth + 1);
  const not = subschema(validation, 'not');
  if (not) nested(not, `${from}.not`);
  for (const key of ['allOf', 'anyOf', 'oneOf'] as const) {
    branchesOf(validation, key).forEach((branch, i) => nested(branch, `${from}.${key}[${i}]`));
  }
}

function checkBranch(
  validation: JsonObject,
  structural: JsonObject,
  at: string,
  from: string,
  errors: FieldError[],
  depth: number,
): void {
  checkBranches(validation, structural, at, from, errors, depth);
  const compare = (
    inner: JsonObject,
    declared: JsonObject | undefined,
    where: string,
    source: string,
  ) => {
    if (declared) checkBranch(inner, declared, where, source, errors, depth + 1);
    else errors.push(fieldError.required(where, `because it is defined in ${source}`));
  };
  const items = subschema(validation, 'items');
  if (items) compare(items, subschema(structural, 'items'), `${at}.items`, `${from}.items`);
  const declared = new Map(propertiesOf(structural));
  for (const [name, field] of propertiesOf(validation)) {
    compare(field, declared.get(name), propertyPath(at, name), propertyPath(from, name));
  }
}

/** Returns `path.properties[name]`. */
export function propertyPath(path: string, name: string): string {
  return `${path}.properties[${name}]`;
}

/** Returns the schemas of declared fields of an unvalidated schema. */
export function propertiesOf(schema: JsonObject): [name: string, schema: JsonObject][] {
  const properties = own(schema, 'properties');
  if (!isRecord(properties)) return [];
  return Object.entries(properties).filter((entry): entry is [string, JsonObject] =>
    isRecord(entry[1]),
  );
}

/** Returns the branches of `allOf`, `anyOf` or `oneOf` of an unvalidated schema. */
export function branchesOf(schema: JsonObject, key: 'allOf' | 'anyOf' | 'oneOf'): JsonObject[] {
  const branches = own(schema, key);
  return Array.isArray(branches) ? branches.filter(isRecord) : [];
}

export function subschema(
  schema: JsonObject,
  key: 'items' | 'additionalProperties' | 'not',
): JsonObject | undefined {
  const value = own(schema, key);
  return isRecord(value) ? value : undefined;
}

export function typeOf(schema: JsonObject): string {
  const type = own(schema, 'type');
  return typeof type === 'string' ? type : '';
}

export function flag(schema: JsonObject, name: string): boolean {
  return own(schema, name) === true;
}

/** Whether a value differs from the zero value of its Go field. */
export function isSet(value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === '') return false;
  return !Array.isArray(value) || value.length > 0;
}
