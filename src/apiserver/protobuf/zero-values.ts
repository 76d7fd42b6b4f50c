import { canonicalQuantity, resourceQuantity } from '../../api/quantity.ts';
import { oncePerObject } from '../../util/memo.ts';
import { isRecord } from '../../util/values.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { MICRO_TIME, QUANTITY, TIME, hasFormat } from '../../api/formats.ts';
import type { TimeLayout } from '../../api/go-time.ts';
import { formatGoTime, parseGoTime } from '../../api/go-time.ts';
import { CopyOnWrite, mapItems, own } from '../../util/json-value.ts';
import { fromBase64, toBase64 } from '../../util/bytes.ts';
import type { MessageField, MessageType } from './decode-message.ts';
import { messageTypeOf } from './decode-message.ts';
import { CUSTOM_JSON } from './custom-json.ts';

/**
 * Returns an object as Go encodes it after decoding: without the zero values that Go omits, such as empty maps and
 * lists, with base64 on one line, times in UTC and canonical quantities. Returns `object` itself if nothing changes, and shares
 * unchanged parts with it.
 */
export function withoutZeroValues(object: JsonObject, type: MessageType): JsonObject {
  let draft = new CopyOnWrite(object);
  for (const field of type.fields.values()) {
    if (field.name === undefined) {
      // The members of the value are members of the object.
      draft = new CopyOnWrite(inlined(draft.value, field.type));
      continue;
    }
    const value = own(draft.value, field.name);
    if (value === undefined) continue;
    if (isOmitted(field, value)) {
      draft.delete(field.name);
      continue;
    }
    const member = memberOf(field, value);
    // Go's zero time, which it omits unless it is behind a pointer.
    if (member === null && field.optional && !field.pointer) draft.delete(field.name);
    else draft.set(field.name, member);
  }
  return draft.value;
}

/**
 * Returns an object as it is read from a storage of protobuf, which has no empty lists: Go omits them from JSON, or
 * writes null. Returns `object` itself if nothing changes.
 */
export function withoutEmptyLists(object: JsonObject, type: MessageType): JsonObject {
  let draft = new CopyOnWrite(object);
  for (const { name, type: member } of fieldsWithLists(type)) {
    const message = typeof member === 'string' ? undefined : messageTypeOf(member.message);
    const inside = (value: unknown) =>
      message && isRecord(value) ? withoutEmptyLists(value, message) : value;
    if (name === undefined) {
      draft = new CopyOnWrite(message ? withoutEmptyLists(draft.value, message) : draft.value);
      continue;
    }
    const value = own(draft.value, name);
    if (value === undefined) continue;
    if (!Array.isArray(value)) draft.set(name, inside(value));
    else draft.set(name, value.length === 0 ? null : mapItems(value, inside));
  }
  return draft.value;
}

/** The fields that are lists which Go does not omit, or that have such fields. */
const fieldsWithLists = oncePerObject((type: MessageType): readonly MessageField[] =>
  [...type.fields.values()].filter(({ label, optional, type: member }) => {
    if (label === 'list' && !optional) return true;
    if (label === 'map' || typeof member === 'string' || CUSTOM_JSON.has(member.message))
      return false;
    return fieldsWithLists(messageTypeOf(member.message)).length > 0;
  }),
);

/** The zero values of scalars. A value of another type is left to validation. */
const ZEROS = { string: '', bytes: '', json: '', bool: false, int32: 0, int64: 0, double: 0 };

function isOmitted(
  { name, optional, pointer, label, type }: MessageField,
  value: unknown,
): boolean {
  if (value === null) return optional;
  if (!optional || (pointer && label === 'single')) return false;
  // The validation of a CRD rejects schemas that have it, even if it is empty, as that of an autoscaler its policies.
  if (name === 'dependencies' || name === 'policies') return false;
  if (label === 'list') return Array.isArray(value) && value.length === 0;
  if (label === 'map') return isRecord(value) && Object.keys(value).length === 0;
  if (typeof type === 'string') return value === ZEROS[type];
  // An empty text is no time.
  if (isTime(type.message)) return false;
  return value === '' || value === 0 || value === false;
}

function isTime(message: string): boolean {
  return message === TIME || message === MICRO_TIME;
}

function memberOf(field: MessageField, value: unknown): unknown {
  const { label, type } = field;
  if (label === 'list') {
    return Array.isArray(value) ? mapItems(value, (item) => elementOf(item, field)) : value;
  }
  if (label !== 'map') return field.pointer ? valueOf(value, type) : elementOf(value, field);
  if (!isRecord(value)) return value;
  const draft = new CopyOnWrite(value);
  for (const key of Object.keys(value)) {
    const member = value[key];
    const element = elementOf(member, field);
    if (element !== member) draft.set(key, element);
  }
  return draft.value;
}

function inlined(object: JsonObject, type: MessageField['type']): JsonObject {
  return typeof type === 'string' ? object : withoutZeroValues(object, messageTypeOf(type.message));
}

/** A value that is no pointer, where null is Go's zero value. */
function elementOf(value: unknown, { type, goType }: MessageField): unknown {
  if (value === null && typeof type === 'object') return zeroOf(type.message);
  if (value === null && typeof type === 'string' && type !== 'bytes' && type !== 'json') {
    return ZEROS[type];
  }
  // As upstream, which rounds the amounts of resources when it sets defaults.
  if (goType?.endsWith('ResourceList') && isAmount(value)) {
    return resourceQuantity(String(value)) ?? value;
  }
  return valueOf(value, type);
}

/** The zero value of a message, in JSON. */
function zeroOf(message: string): unknown {
  if (message === QUANTITY) return '0';
  if (message === 'intstr.IntOrString') return 0;
  return CUSTOM_JSON.has(message) ? null : {};
}

function valueOf(value: unknown, type: MessageField['type']): unknown {
  if (typeof type === 'string') {
    return type === 'bytes' && typeof value === 'string' ? canonicalBase64(value) : value;
  }
  if (isRecord(value)) {
    return CUSTOM_JSON.has(type.message)
      ? value
      : withoutZeroValues(value, messageTypeOf(type.message));
  }
  switch (type.message) {
    case QUANTITY:
      return isAmount(value) ? (canonicalQuantity(String(value)) ?? value) : value;
    case TIME:
      return typeof value === 'string' ? canonicalTime(value, 'seconds') : value;
    case MICRO_TIME:
      return typeof value === 'string' ? canonicalTime(value, 'micros') : value;
    default:
      return value;
  }
}

function isAmount(value: unknown): value is string | number {
  return typeof value === 'string' || typeof value === 'number';
}

/** Go ignores line breaks in base64, as `base64` and Python's `encodebytes` write them. */
function canonicalBase64(text: string): string {
  const compact = text.replace(/[\r\n]+/g, '');
  return hasFormat('byte', compact) ? toBase64(fromBase64(compact)) : text;
}

/** Returns the text of a time as Go encodes it. Leaves a text that is no time to validation. */
function canonicalTime(text: string, layout: TimeLayout): string | null {
  const moment = parseGoTime(text, layout);
  const canonical = typeof moment === 'string' ? text : formatGoTime(moment, layout);
  // Go writes years of other lengths but does not read them.
  return canonical === undefined ? text : canonical;
}
