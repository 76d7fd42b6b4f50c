import { isRecord } from '../../util/values.ts';
import type { JsonObject } from '../schema/json-value.ts';
import { hasFormat } from '../schema/formats.ts';
import { Draft, mapItems, own } from '../schema/json-value.ts';
import type { Field, MessageType } from './decode-message.ts';
import { typeOf } from './decode-message.ts';
import { CUSTOM_JSON } from './custom-json.ts';

/**
 * Returns an object as Go encodes it after decoding: without the zero values that Go omits, such as empty maps and
 * lists, and with base64 on one line. Returns `object` itself if nothing changes, and shares unchanged parts with it.
 */
export function withoutZeroValues(object: JsonObject, type: MessageType): JsonObject {
  let draft = new Draft(object);
  for (const field of type.fields.values()) {
    if (field.name === undefined) {
      // The members of the value are members of the object.
      draft = new Draft(withoutZeros(draft.value, field.type));
      continue;
    }
    const value = own(draft.value, field.name);
    if (value === undefined || value === null) continue;
    if (isOmitted(field, value)) draft.delete(field.name);
    else draft.set(field.name, memberOf(field, value));
  }
  return draft.value;
}

/** The zero values of scalars. A value of another type is left to validation. */
const ZEROS = { string: '', bytes: '', json: '', bool: false, int32: 0, int64: 0, double: 0 };

function isOmitted({ name, optional, pointer, label, type }: Field, value: unknown): boolean {
  if (!optional || (pointer && label === 'single')) return false;
  // The validation of a CRD rejects schemas that have it, even if it is empty.
  if (name === 'dependencies') return false;
  if (label === 'list') return Array.isArray(value) && value.length === 0;
  if (label === 'map') return isRecord(value) && Object.keys(value).length === 0;
  if (typeof type === 'string') return value === ZEROS[type];
  return value === '' || value === 0 || value === false;
}

function memberOf({ label, type }: Field, value: unknown): unknown {
  if (label === 'list') {
    return Array.isArray(value) ? mapItems(value, (item) => valueOf(item, type)) : value;
  }
  if (label !== 'map' || !isRecord(value)) return valueOf(value, type);
  const draft = new Draft(value);
  for (const [key, member] of Object.entries(value)) {
    draft.set(key, member === null && type === 'string' ? '' : valueOf(member, type));
  }
  return draft.value;
}

function valueOf(value: unknown, type: Field['type']): unknown {
  if (type === 'bytes' && typeof value === 'string') return canonicalBase64(value);
  return isRecord(value) ? withoutZeros(value, type) : value;
}

function withoutZeros(value: JsonObject, type: Field['type']): JsonObject {
  if (typeof type === 'string' || CUSTOM_JSON.has(type.message)) return value;
  return withoutZeroValues(value, typeOf(type.message));
}

/** Go ignores line breaks in base64, as `base64` and Python's `encodebytes` write them. */
function canonicalBase64(text: string): string {
  const compact = text.replace(/[\r\n]+/g, '');
  return hasFormat('byte', compact) ? Buffer.from(compact, 'base64').toString('base64') : text;
}
