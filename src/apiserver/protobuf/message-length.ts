import { fromBase64, utf8Length } from '../../util/bytes.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { oncePerObject } from '../../util/memo.ts';
import { isRecord } from '../../util/values.ts';
import { CUSTOM_JSON, customText, numberOf } from './custom-json.ts';
import type { MessageField, MessageType, Scalar } from './decode-message.ts';
import { messageTypeOf } from './decode-message.ts';
import { WIRE_BYTES } from './wire-reader.ts';

/** Bytes of a negative integer, and of a double. */
const NEGATIVE_BYTES = 10;
const DOUBLE_BYTES = 8;

/** Returns the number of bytes that `encodeMessage` writes for an object, in a fraction of its time. */
export function messageLength(type: MessageType, object: JsonObject): number {
  let length = 0;
  for (const entry of type.descending) {
    const [number, field] = entry;
    const value = field.name === undefined ? object : object[field.name];
    switch (field.label) {
      case 'list':
        if (!Array.isArray(value)) break;
        for (const item of value) length += fieldLength(number, field.type, item);
        break;
      case 'map':
        if (!isRecord(value)) break;
        for (const key of Object.keys(value)) {
          const inEntry = textLength(1, key) + fieldLength(2, field.type, value[key]);
          length += delimitedLength(number, inEntry);
        }
        break;
      case 'single':
        if (value !== undefined && value !== null) length += fieldLength(number, field.type, value);
        else if (!field.pointer) length += zeroLength(entry);
    }
  }
  return length;
}

/** Length of a field with Go's zero value. */
const zeroLength = oncePerObject(([number, { type }]: MessageType['descending'][number]): number =>
  // The zero value of bytes is nil, which is not written.
  type === 'bytes' || type === 'json' ? 0 : fieldLength(number, type, undefined),
);

function fieldLength(number: number, type: MessageField['type'], value: unknown): number {
  if (typeof type === 'string') return scalarLength(number, type, value);
  const message = messageTypeOf(type.message);
  const custom = CUSTOM_JSON.get(message.name);
  const members = custom?.toMembers(value) ?? (isRecord(value) ? value : {});
  return delimitedLength(number, messageLength(message, members));
}

function scalarLength(number: number, type: Scalar, value: unknown): number {
  switch (type) {
    case 'string':
      return textLength(number, customText(value));
    case 'bytes':
      return delimitedLength(number, fromBase64(customText(value)).byteLength);
    case 'json':
      return textLength(number, JSON.stringify(value));
    case 'bool':
      return tagLength(number) + 1;
    case 'int32':
    case 'int64': {
      const integer = numberOf(value);
      return tagLength(number) + (integer < 0 ? NEGATIVE_BYTES : varintLength(integer));
    }
    case 'double':
      return tagLength(number) + DOUBLE_BYTES;
  }
}

export function textLength(number: number, text: string): number {
  return delimitedLength(number, utf8Length(text));
}

/** Length of a field with `length` bytes. */
export function delimitedLength(number: number, length: number): number {
  return tagLength(number) + varintLength(length) + length;
}

function tagLength(number: number): number {
  return varintLength(number * 8 + WIRE_BYTES);
}

export function varintLength(value: number): number {
  let length = 1;
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) length++;
  return length;
}
