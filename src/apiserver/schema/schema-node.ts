import type { JsonObject } from './json-value.ts';
import { own } from './json-value.ts';
import { isRecord } from '../../util/values.ts';

/*
 * Reading a schema that nobody has checked yet: what is not of the right type is not there.
 */

/** `path.properties[name]` */
export function propertyPath(path: string, name: string): string {
  return `${path}.properties[${name}]`;
}

/** The schemas of declared fields. */
export function propertiesOf(schema: JsonObject): [name: string, schema: JsonObject][] {
  const properties = own(schema, 'properties');
  if (!isRecord(properties)) return [];
  return Object.entries(properties).filter((entry): entry is [string, JsonObject] =>
    isRecord(entry[1]),
  );
}

/** The branches of `allOf`, `anyOf` or `oneOf`. */
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

/** Whether Go would see more than a field's zero value. */
export function isSet(value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === '') return false;
  return !Array.isArray(value) || value.length > 0;
}
