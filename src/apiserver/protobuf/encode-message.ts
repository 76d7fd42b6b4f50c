import { isRecord } from '../../util/values.ts';
import type { JsonObject } from '../schema/json-value.ts';
import type { Field, MessageType, Scalar } from './decode-message.ts';
import { typeOf } from './decode-message.ts';
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
        for (const item of reversed(value)) writeValue(number, field.type, item, writer);
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

function reversed(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value.toReversed() : [];
}

/** Writes the entries by key, each a message with the key as field 1 and the value as field 2. */
function writeMap(number: number, { type }: Field, entries: JsonObject, writer: WireWriter): void {
  const keys = Object.keys(entries).sort((a, b) => Buffer.compare(Buffer.from(b), Buffer.from(a)));
  for (const key of keys) {
    const { length } = writer;
    writeValue(2, type, entries[key], writer);
    writer.text(1, key);
    writer.delimit(number, length);
  }
}

function writeZero(number: number, type: Field['type'], writer: WireWriter): void {
  // Go's zero value of bytes is nil, which is not written.
  if (type !== 'bytes' && type !== 'json') writeValue(number, type, undefined, writer);
}

function writeValue(number: number, type: Field['type'], value: unknown, writer: WireWriter): void {
  if (typeof type === 'string') return writeScalar(number, type, value, writer);
  const { length } = writer;
  const message = typeOf(type.message);
  const toMembers = MEMBERS.get(message.name);
  encodeMessage(message, toMembers?.(value) ?? recordOf(value), writer);
  writer.delimit(number, length);
}

function writeScalar(number: number, type: Scalar, value: unknown, writer: WireWriter): void {
  switch (type) {
    case 'string':
      return writer.text(number, textOf(value));
    case 'bytes':
      return writer.bytes(number, Buffer.from(textOf(value), 'base64'));
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

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function numberOf(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}

function recordOf(value: unknown): JsonObject {
  return isRecord(value) ? value : {};
}

/** Functions for Go types with a custom JSON encoding, by message name: each maps the JSON to the fields. */
const MEMBERS: ReadonlyMap<string, (value: unknown) => JsonObject> = new Map<
  string,
  (value: unknown) => JsonObject
>([
  [
    'resource.Quantity',
    (value) => ({ string: typeof value === 'number' ? String(value) : textOf(value) || '0' }),
  ],
  [
    'intstr.IntOrString',
    (value) =>
      typeof value === 'string'
        ? { type: 1, intVal: 0, strVal: value }
        : { type: 0, intVal: numberOf(value), strVal: '' },
  ],
  ['meta.v1.Time', time],
  ['meta.v1.MicroTime', time],
  ['meta.v1.FieldsV1', (value) => ({ Raw: value })],
  ['meta.v1.Verbs', (value) => ({ items: value })],
  ['apiextensions.v1.JSON', (value) => ({ raw: value })],
  [
    'apiextensions.v1.JSONSchemaPropsOrArray',
    (value) => (Array.isArray(value) ? { jSONSchemas: value } : { schema: value }),
  ],
  [
    'apiextensions.v1.JSONSchemaPropsOrBool',
    (value) => (isRecord(value) ? { allows: true, schema: value } : { allows: value === true }),
  ],
  [
    'apiextensions.v1.JSONSchemaPropsOrStringArray',
    (value) => (Array.isArray(value) ? { property: value } : { schema: value }),
  ],
  ...['authentication.v1.AttestationValue', 'authentication.v1.ExtraValue']
    .concat('authorization.v1.ExtraValue', 'certificates.v1.ExtraValue')
    .map((name): [string, (value: unknown) => JsonObject] => [name, (value) => ({ items: value })]),
  ['runtime.RawExtension', (value) => ({ raw: value })],
]);

/** Whether the JSON of a message is not an object of its fields. */
export function hasCustomJson(message: string): boolean {
  return MEMBERS.has(message);
}

/** Seconds since the Unix epoch and nanoseconds, which Go truncates to microseconds; none for the zero time. */
function time(value: unknown): JsonObject {
  if (typeof value !== 'string') return {};
  const fraction = /\.(\d{1,6})/.exec(value)?.[1] ?? '';
  return {
    seconds: Math.floor(Date.parse(value) / 1000),
    nanos: Number(fraction.padEnd(6, '0')) * 1000,
  };
}
