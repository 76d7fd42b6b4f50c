import { isRecord } from '../../util/values.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { MICRO_TIME, TIME, hasFormat } from '../../api/formats.ts';
import type { TimeLayout } from '../../api/go-time.ts';
import { formatGoTime, parseGoTime } from '../../api/go-time.ts';
import { Draft, mapItems, own } from '../../util/json-value.ts';
import type { Field, MessageType } from './decode-message.ts';
import { typeOf } from './decode-message.ts';
import { CUSTOM_JSON } from './custom-json.ts';

/**
 * Returns an object as Go encodes it after decoding: without the zero values that Go omits, such as empty maps and
 * lists, with base64 on one line and with times in UTC. Returns `object` itself if nothing changes, and shares
 * unchanged parts with it.
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
    if (value === undefined) continue;
    if (isOmitted(field, value)) draft.delete(field.name);
    else draft.set(field.name, memberOf(field, value));
  }
  return draft.value;
}

/** The zero values of scalars. A value of another type is left to validation. */
const ZEROS = { string: '', bytes: '', json: '', bool: false, int32: 0, int64: 0, double: 0 };

function isOmitted({ name, optional, pointer, label, type }: Field, value: unknown): boolean {
  if (value === null) return optional;
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
    return Array.isArray(value) ? mapItems(value, (item) => elementOf(item, type)) : value;
  }
  if (label !== 'map' || !isRecord(value)) return valueOf(value, type);
  const draft = new Draft(value);
  for (const [key, member] of Object.entries(value)) {
    draft.set(key, elementOf(member, type));
  }
  return draft.value;
}

/** An element of a list or map, where null is Go's zero value. */
function elementOf(value: unknown, type: Field['type']): unknown {
  return value === null && type === 'string' ? '' : valueOf(value, type);
}

function valueOf(value: unknown, type: Field['type']): unknown {
  if (type === 'bytes' && typeof value === 'string') return canonicalBase64(value);
  if (typeof value === 'string' && typeof type === 'object')
    return canonicalTime(value, type.message);
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

const LAYOUTS: ReadonlyMap<string, TimeLayout> = new Map([
  [TIME, 'seconds'],
  [MICRO_TIME, 'micros'],
]);

/** Returns the text of a time as Go encodes it. Leaves other types, and a text that is no time, to validation. */
function canonicalTime(text: string, message: string): string | null {
  const layout = LAYOUTS.get(message);
  const moment = layout ? parseGoTime(text, layout) : text;
  const canonical = layout && typeof moment === 'object' ? formatGoTime(moment, layout) : text;
  // Go writes years of other lengths but does not read them.
  return canonical === undefined ? text : canonical;
}
