import type { JsonObject } from '../schema/json-value.ts';
import { own, setOwn } from '../schema/json-value.ts';
import { isRecord } from '../../util/values.ts';

/**
 * Access to the fields of objects that may still be of any shape: what is of another type than
 * asked for counts as absent. That it is of the wrong type is for the schema to say.
 */
type Fields = Readonly<Record<string, unknown>>;

/** The object in a field, or undefined. */
export function objectIn(parent: Fields | undefined, field: string): JsonObject | undefined {
  const value = parent && own(parent, field);
  return isRecord(value) ? value : undefined;
}

/** The objects of a list; an item that is none is an empty object, so that indexes stay right. */
export function objectsIn(parent: Fields | undefined, field: string): readonly JsonObject[] {
  return listIn(parent, field).map((item) => (isRecord(item) ? item : {}));
}

export function listIn(parent: Fields | undefined, field: string): readonly unknown[] {
  const value = parent && own(parent, field);
  return Array.isArray(value) ? value : [];
}

/** The text of a field; empty if it has none. */
export function textIn(parent: Fields | undefined, field: string): string {
  const value = parent && own(parent, field);
  return typeof value === 'string' ? value : '';
}

export function numberIn(parent: Fields | undefined, field: string): number | undefined {
  const value = parent && own(parent, field);
  return typeof value === 'number' ? value : undefined;
}

export function isSet(parent: Fields | undefined, field: string): boolean {
  const value = parent && own(parent, field);
  return value !== undefined && value !== null;
}

/** Sets a field that has no value; an empty text counts as none, as it does in Go. */
export function setDefault(parent: JsonObject, field: string, value: unknown): void {
  if (!isSet(parent, field) || own(parent, field) === '') setOwn(parent, field, value);
}
