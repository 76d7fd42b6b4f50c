import type { JsonObject } from './json-value.ts';
import { own } from './json-value.ts';
import { isRecord } from '../../util/values.ts';

/*
 * Members of an object that nobody has checked yet: what is not of the right type is not there.
 */

export function objectAt(object: Readonly<JsonObject>, name: string): JsonObject {
  const value = own(object, name);
  return isRecord(value) ? value : {};
}

export function objectsAt(object: Readonly<JsonObject>, name: string): JsonObject[] {
  const value = own(object, name);
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

export function textAt(object: Readonly<JsonObject>, name: string): string {
  const value = own(object, name);
  return typeof value === 'string' ? value : '';
}

export function textsAt(object: Readonly<JsonObject>, name: string): string[] {
  const value = own(object, name);
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
}
