import { equalJson } from '../../api/equal.ts';
import type { FieldError } from '../../api/field-error.ts';
import { formatFieldError } from '../../api/field-error.ts';
import { Findings } from './findings.ts';
import type { JsonObject } from './json-value.ts';
import { objectAt, objectsAt, own, requireDepth, textAt } from './json-value.ts';
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
  const check = new StructuralCheck();
  check.node(schema, 'root', path, 0);
  check.complete(schema, schema, path, path, 0);
  return check.errors.sort((a, b) => (formatFieldError(a) < formatFieldError(b) ? -1 : 1));
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

class StructuralCheck extends Findings {
  node(schema: JsonObject, level: Level, path: string, depth: number): void {
    requireDepth(depth);
    const items = subschema(schema, 'items');
    if (typeOf(schema) === 'array' && !items) this.required(`${path}.items`, 'must be specified');
    if (items) this.node(items, 'item', `${path}.items`, depth + 1);
    for (const [name, field] of propertiesOf(schema)) {
      this.node(field, 'field', propertyPath(path, name), depth + 1);
    }
    if (own(schema, 'additionalProperties') !== undefined && level === 'root') {
      this.forbidden(`${path}.additionalProperties`, 'must not be used at the root');
    }
    const values = subschema(schema, 'additionalProperties');
    if (values) this.node(values, 'field', `${path}.additionalProperties`, depth + 1);
    this.#checkExtensions(schema, path);
    const skipAnyOf = isIntOrStringAnyOf(schema);
    this.#checkValueValidation(schema, skipAnyOf, isIntOrStringAllOf(schema), path, depth);
    this.#checkType(schema, level, path);
    this.#checkMetaProperties(schema, level, path);
  }

  #checkType(schema: JsonObject, level: Level, path: string): void {
    const at = `${path}.type`;
    const type = typeOf(schema);
    const embedded = flag(schema, 'x-kubernetes-embedded-resource');
    const open = flag(schema, 'x-kubernetes-preserve-unknown-fields');
    if (embedded && type !== 'object') {
      const detail = 'must be object if x-kubernetes-embedded-resource is true';
      if (type) this.invalid(at, type, detail);
      else this.required(at, detail);
    } else if (!type && !flag(schema, 'x-kubernetes-int-or-string') && !open) {
      this.required(at, MUST_NOT_BE_EMPTY[level]);
    }
    if (embedded && own(schema, 'additionalProperties') !== undefined) {
      const detail = 'must not be used if x-kubernetes-embedded-resource is set';
      this.forbidden(`${path}.additionalProperties`, detail);
    }
    if (embedded && !open && propertiesOf(schema).length === 0) {
      const detail =
        'must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields';
      this.required(`${path}.properties`, detail);
    }
    if (level === 'root' && type && type !== 'object') {
      this.invalid(at, type, 'must be object at the root');
    }
  }

  /** Checks the schemas of `apiVersion`, `kind` and `metadata`, which may restrict hardly anything. */
  #checkMetaProperties(schema: JsonObject, level: Level, path: string): void {
    if (level !== 'root' && !flag(schema, 'x-kubernetes-embedded-resource')) return;
    for (const [name, field] of propertiesOf(schema)) {
      const expected = META_TYPES.get(name);
      const at = propertyPath(path, name);
      if (expected && typeOf(field) !== expected) {
        this.invalid(`${at}.type`, typeOf(field), `must be ${expected}`);
      }
      if (name === 'metadata' && level === 'root' && !restrictsNameOnly(field)) {
        const detail =
          'must not specify anything other than name and generateName, but metadata is implicitly specified';
        this.forbidden(at, detail);
      }
    }
  }

  #checkExtensions(schema: JsonObject, path: string): void {
    if (!flag(schema, 'x-kubernetes-int-or-string')) return;
    for (const name of ['x-kubernetes-preserve-unknown-fields', 'x-kubernetes-embedded-resource']) {
      if (!flag(schema, name)) continue;
      this.invalid(`${path}.${name}`, true, 'must be false if x-kubernetes-int-or-string is true');
    }
  }

  #checkValueValidation(
    schema: JsonObject,
    skipAnyOf: boolean,
    skipFirstAllOf: boolean,
    path: string,
    depth: number,
  ): void {
    const nested = (branch: JsonObject, skip: boolean, at: string) =>
      this.#checkNested(branch, skip, `${path}.${at}`, depth + 1);
    if (!skipAnyOf) {
      branchesOf(schema, 'anyOf').forEach((branch, i) => nested(branch, false, `anyOf[${i}]`));
    }
    branchesOf(schema, 'allOf').forEach((branch, i) =>
      nested(branch, skipFirstAllOf && i === 0, `allOf[${i}]`),
    );
    branchesOf(schema, 'oneOf').forEach((branch, i) => nested(branch, false, `oneOf[${i}]`));
    const not = subschema(schema, 'not');
    if (not) nested(not, false, 'not');
    const source = own(schema, 'pattern');
    if (typeof source !== 'string' || source === '') return;
    const compiled = pattern(source);
    if ('error' in compiled) {
      const detail = `must be a valid regular expression, but isn't: ${compiled.error}`;
      this.invalid(`${path}.pattern`, source, detail);
    }
  }

  #checkNested(schema: JsonObject, skipAnyOf: boolean, path: string, depth: number): void {
    requireDepth(depth);
    this.#checkValueValidation(schema, skipAnyOf, false, path, depth);
    const items = subschema(schema, 'items');
    if (items) this.#checkNested(items, false, `${path}.items`, depth + 1);
    for (const [name, field] of propertiesOf(schema)) {
      const at = propertyPath(path, name);
      this.#checkNested(field, false, at, depth + 1);
      if (name === 'metadata') this.forbidden(at, 'must not be specified in a nested context');
    }
    for (const [key, detail] of FORBIDDEN_NESTED) {
      if (isSet(own(schema, key))) this.forbidden(`${path}.${key}`, detail);
    }
  }

  /**
   * Checks that the fields in value validations (`allOf`, `anyOf`, `oneOf`, `not`) are declared
   * outside of them.
   *
   * @param at path of `structural`
   * @param from path of `validation`
   */
  complete(
    validation: JsonObject,
    structural: JsonObject,
    at: string,
    from: string,
    depth: number,
  ): void {
    requireDepth(depth);
    const nested = (branch: JsonObject, where: string) =>
      this.#checkBranch(branch, structural, at, `${from}.${where}`, depth + 1);
    const not = subschema(validation, 'not');
    if (not) nested(not, 'not');
    for (const key of ['allOf', 'anyOf', 'oneOf'] as const) {
      branchesOf(validation, key).forEach((branch, i) => nested(branch, `${key}[${i}]`));
    }
  }

  #checkBranch(
    validation: JsonObject,
    structural: JsonObject,
    at: string,
    from: string,
    depth: number,
  ): void {
    this.complete(validation, structural, at, from, depth);
    const compare = (
      inner: JsonObject,
      declared: JsonObject | undefined,
      where: string,
      source: string,
    ) => {
      if (declared) this.#checkBranch(inner, declared, where, source, depth + 1);
      else this.required(where, `because it is defined in ${source}`);
    };
    const items = subschema(validation, 'items');
    if (items) compare(items, subschema(structural, 'items'), `${at}.items`, `${from}.items`);
    const declared = new Map(propertiesOf(structural));
    for (const [name, field] of propertiesOf(validation)) {
      compare(field, declared.get(name), propertyPath(at, name), propertyPath(from, name));
    }
  }
}

function restrictsNameOnly(metadata: JsonObject): boolean {
  const restricted = propertiesOf(metadata).map(([name]) => name);
  return (
    restricted.every((name) => name === 'name' || name === 'generateName') &&
    Object.entries(metadata).every(
      ([key, value]) => ['type', 'properties', 'default'].includes(key) || !isSet(value),
    )
  );
}

const INT_OR_STRING = [{ type: 'integer' }, { type: 'string' }];

function isIntOrStringAnyOf(schema: JsonObject): boolean {
  return equalJson(own(schema, 'anyOf'), INT_OR_STRING);
}

function isIntOrStringAllOf(schema: JsonObject): boolean {
  const first = branchesOf(schema, 'allOf')[0];
  return first !== undefined && isIntOrStringAnyOf(first);
}

export function propertyPath(path: string, name: string): string {
  return `${path}.properties[${name}]`;
}

/** Returns the schemas of declared fields of an unvalidated schema. */
export function propertiesOf(schema: JsonObject): [name: string, schema: JsonObject][] {
  return Object.entries(objectAt(schema, 'properties')).filter(
    (entry): entry is [string, JsonObject] => isRecord(entry[1]),
  );
}

export function branchesOf(schema: JsonObject, key: 'allOf' | 'anyOf' | 'oneOf'): JsonObject[] {
  return objectsAt(schema, key);
}

export function subschema(
  schema: JsonObject,
  key: 'items' | 'additionalProperties' | 'not',
): JsonObject | undefined {
  const value = own(schema, key);
  return isRecord(value) ? value : undefined;
}

export function typeOf(schema: JsonObject): string {
  return textAt(schema, 'type');
}

export function flag(schema: JsonObject, name: string): boolean {
  return own(schema, name) === true;
}

/** Whether a value differs from the zero value of its Go field. */
export function isSet(value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === '') return false;
  return !Array.isArray(value) || value.length > 0;
}
