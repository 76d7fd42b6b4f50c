import { isRecord } from '../../util/values.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { compareBytes, fromBase64, utf8Bytes } from '../../util/bytes.ts';
import { CUSTOM_JSON, numberOf, customText } from './custom-json.ts';
import type { MessageField, MessageType, Scalar } from './decode-message.ts';
import { messageTypeOf } from './decode-message.ts';
import type { WireWriter } from './wire-writer.ts';

/**
 * Writes an object as a message, with the bytes that Go writes for the decoded struct: fields by number, maps
 * by key, the zero value of each field that is not a pointer. Members that the message does not have are
 * omitted.
 */
export function encodeMessage(type: MessageType, object: JsonObject, writer: WireWriter): void {
  for (const [number, field] of type.descending) {
    // The members of an inlined value are members of the object.
    const value = field.name === undefined ? object : object[field.name];
    switch (field.label) {
      case 'list':
        for (const item of reverse(value)) writeValue(number, field.type, item, writer);
        break;
      case 'map':
        if (isRecord(value)) writeMap(number, field, value, writer);
        break;
      case 'single':
        if (value !== undefined && value !== null) writeValue(number, field.type, value, writer);
        else if (!field.pointer) writeZero(number, field.type, writer);
    }
  }
}

function reverse(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value.toReversed() : [];
}

/** Writes the entries by key, each a message with the key as field 1 and the value as field 2. */
function writeMap(
  number: number,
  { type }: MessageField,
  entries: JsonObject,
  writer: WireWriter,
): void {
  for (const key of sortedByBytes(Object.keys(entries)).toReversed()) {
    const { length } = writer;
    writeValue(2, type, entries[key], writer);
    writer.text(1, key);
    writer.delimit(number, length);
  }
}

/** Sorts texts by their UTF-8 bytes. Only surrogates have another order in UTF-16. */
function sortedByBytes(texts: string[]): string[] {
  if (!texts.some((text) => /[\uD800-\uDFFF]/.test(text))) return texts.sort();
  const pairs = texts.map((text) => ({ text, bytes: utf8Bytes(text) }));
  return pairs.sort((a, b) => compareBytes(a.bytes, b.bytes)).map(({ text }) => text);
}

function writeZero(number: number, type: MessageField['type'], writer: WireWriter): void {
  // Go's zero value of bytes is nil, which is not written.
  if (type !== 'bytes' && type !== 'json') writeValue(number, type, undefined, writer);
}

function writeValue(
  number: number,
  type: MessageField['type'],
  value: unknown,
  writer: WireWriter,
): void {
  if (typeof type === 'string') return writeScalar(number, type, value, writer);
  const { length } = writer;
  const message = messageTypeOf(type.message);
  const custom = CUSTOM_JSON.get(message.name);
  encodeMessage(message, custom?.toMembers(value) ?? recordOf(value), writer);
  writer.delimit(number, length);
}

function writeScalar(number: number, type: Scalar, value: unknown, writer: WireWriter): void {
  switch (type) {
    case 'string':
      return writer.text(number, customText(value));
    case 'bytes':
      return writer.bytes(number, fromBase64(customText(value)));
    case 'json':
      return writer.text(number, JSON.stringify(value));
    case 'bool':
      return writer.integer(number, value === true ? 1 : 0);
    case 'int32':
    case 'int64':
      return writer.integer(number, numberOf(value));
    case 'double':
      return writer.double(number, numberOf(value));
  }
}

function recordOf(value: unknown): JsonObject {
  return isRecord(value) ? value : {};
}
