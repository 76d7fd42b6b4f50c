import { fromBase64 } from '../../../util/bytes.ts';
import { equalJson } from '../../../api/equal.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';
import { configKeyProblems } from '../shared/config-keys.ts';

export const MAX_DATA_BYTES = 1024 * 1024;

export function requireUnchangedData(
  next: CheckedObject,
  previous: StoredObject,
  fields: readonly string[],
): void {
  if (previous['immutable'] !== true) return;
  const why = 'field is immutable when `immutable` is set';
  if (next.value['immutable'] !== true) next.forbidden('immutable', why);
  for (const field of fields) {
    if (!equalJson(next.value[field] ?? {}, previous[field] ?? {})) next.forbidden(field, why);
  }
}

export function validateDataKey(object: CheckedObject, field: string, key: string): void {
  object.problems(`${field}[${key}]`, configKeyProblems(key), key);
}

/** Returns the number of bytes of the values. */
export function dataSize(
  data: Readonly<Record<string, unknown>>,
  sizeOfText: (text: string) => number,
): number {
  return Object.values(data)
    .filter((value) => typeof value === 'string')
    .reduce((size, value) => size + sizeOfText(value), 0);
}

export function base64Length(text: string): number {
  return fromBase64(text).byteLength;
}
