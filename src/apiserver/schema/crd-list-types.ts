import type { FieldError } from './field-error.ts';
import { fieldError } from './field-error.ts';
import type { JsonObject } from './json-value.ts';
import { own } from './json-value.ts';
import { isRecord } from '../../util/values.ts';
import { flag, propertyPath, subschema, typeOf } from './schema-node.ts';

/** What is wrong with how a schema says its lists and maps are merged. */
export function checkListAndMapTypes(schema: JsonObject, path: string, errors: FieldError[]): void {
  checkMergeType(schema, 'x-kubernetes-map-type', 'object', ['atomic', 'granular'], path, errors);
  checkMergeType(schema, 'x-kubernetes-list-type', 'array', ['atomic', 'set', 'map'], path, errors);
  const listType = own(schema, 'x-kubernetes-list-type');
  const keys = keysOf(schema);
  if (keys.length > 0 && listType !== 'map') {
    const at = `${path}.x-kubernetes-list-type`;
    const detail = 'must be map if x-kubernetes-list-map-keys is non-empty';
    errors.push(
      listType === undefined
        ? fieldError.required(at, detail)
        : fieldError.invalid(at, listType, detail),
    );
  }
  const items = subschema(schema, 'items');
  if (listType === 'set' && items) checkSetItems(items, path, errors);
  if (listType === 'map') checkListMap(keys, items, path, errors);
  if ((listType === 'set' || listType === 'map') && items && flag(items, 'nullable')) {
    const detail = `cannot be nullable when x-kubernetes-list-type is ${listType}`;
    errors.push(fieldError.forbidden(`${path}.items.nullable`, detail));
  }
}

function checkMergeType(
  schema: JsonObject,
  name: 'x-kubernetes-map-type' | 'x-kubernetes-list-type',
  expected: string,
  supported: readonly string[],
  path: string,
  errors: FieldError[],
): void {
  const value = own(schema, name);
  if (value === undefined) return;
  const type = typeOf(schema);
  const detail = `must be ${expected} if ${name} is specified`;
  if (!type) errors.push(fieldError.required(`${path}.type`, detail));
  else if (type !== expected) errors.push(fieldError.invalid(`${path}.type`, type, detail));
  if (!supported.some((each) => each === value)) {
    errors.push(fieldError.notSupported(`${path}.${name}`, value, supported));
  }
}

function checkSetItems(items: JsonObject, path: string, errors: FieldError[]): void {
  const detail = 'must be atomic as item of a list with x-kubernetes-list-type=set';
  const listType = own(items, 'x-kubernetes-list-type');
  if (typeOf(items) === 'array' && listType !== undefined && listType !== 'atomic') {
    errors.push(fieldError.invalid(`${path}.items.x-kubernetes-list-type`, listType, detail));
  }
  if (typeOf(items) === 'object' && own(items, 'x-kubernetes-map-type') !== 'atomic') {
    const value = own(items, 'x-kubernetes-map-type') ?? null;
    errors.push(fieldError.invalid(`${path}.items.x-kubernetes-map-type`, value, detail));
  }
}

function checkListMap(
  keys: readonly string[],
  items: JsonObject | undefined,
  path: string,
  errors: FieldError[],
): void {
  const at = `${path}.x-kubernetes-list-map-keys`;
  if (keys.length === 0) {
    const detail = 'must not be empty if x-kubernetes-list-type is map';
    errors.push(fieldError.required(at, detail));
  }
  if (!items) {
    const detail = 'must have a schema if x-kubernetes-list-type is map';
    errors.push(fieldError.required(`${path}.items`, detail));
    return;
  }
  if (typeOf(items) !== 'object') {
    const detail = "must be object if parent array's x-kubernetes-list-type is map";
    errors.push(fieldError.invalid(`${path}.items.type`, typeOf(items), detail));
    return;
  }
  const required = own(items, 'required');
  const properties = own(items, 'properties');
  for (const [index, key] of keys.entries()) {
    const field = isRecord(properties) ? own(properties, key) : undefined;
    if (!isRecord(field)) {
      const detail = 'entries must all be names of item properties';
      errors.push(fieldError.invalid(at, keys, detail));
    } else {
      const isRequired = Array.isArray(required) && required.includes(key);
      checkKeyField(field, isRequired, propertyPath(`${path}.items`, key), errors);
    }
    if (keys.indexOf(key) < index) {
      errors.push(fieldError.invalid(at, keys, 'must not contain duplicate entries'));
    }
  }
}

function checkKeyField(
  field: JsonObject,
  isRequired: boolean,
  path: string,
  errors: FieldError[],
): void {
  if (['array', 'object'].includes(typeOf(field))) {
    const detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
    errors.push(fieldError.invalid(`${path}.type`, typeOf(field), detail));
  }
  if (!isRequired && (own(field, 'default') ?? null) === null) {
    const detail =
      'this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property';
    errors.push(fieldError.required(`${path}.default`, detail));
  }
  if (flag(field, 'nullable')) {
    const detail = 'this property is in x-kubernetes-list-map-keys, so it cannot be nullable';
    errors.push(fieldError.forbidden(`${path}.nullable`, detail));
  }
}

function keysOf(schema: JsonObject): readonly string[] {
  const keys = own(schema, 'x-kubernetes-list-map-keys');
  return Array.isArray(keys) ? keys.filter((key) => typeof key === 'string') : [];
}
