import type { JsonObject } from '../../util/json-value.ts';
import { requireDepth, setOwn } from '../../util/json-value.ts';
import { WIRE_BYTES, FIXED64, VARINT, WireError, WireReader } from './wire-reader.ts';
import { PROTOBUF } from '../generated/protobuf.ts';
import { CUSTOM_JSON } from './custom-json.ts';

/**
 * Decodes a message to the JSON that Go would encode the decoded struct to. Defaulting and validation
 * therefore treat protobuf and JSON requests alike. Unknown fields are skipped, as in Go.
 *
 * @throws {WireError} if the bytes are not such a message
 * @throws {NestingError} if the message is nested too deeply
 * @throws {WidthError} if it has more than `maxMessages` messages in it
 */
export function decodeMessage(
  type: MessageType,
  bytes: Uint8Array,
  maxMessages: number = Infinity,
): JsonObject {
  const fields = new Map<MessageField, FieldValue>();
  collect(
    type,
    new WireReader(bytes, 0, bytes.byteLength, { max: maxMessages, used: 0 }),
    fields,
    1,
  );
  return membersOf(type, fields, 1);
}

/** A message without any set field: an empty Go struct as JSON. */
export function emptyMessage(type: MessageType): JsonObject {
  return membersOf(type, new Map(), 1);
}

/**
 * The values of a field on the wire: items of a list, entries of a map, the last scalar, or all
 * parts of a message. A message field that occurs several times is the concatenation of its parts.
 */
type FieldValue =
  | { readonly kind: 'list'; readonly items: unknown[] }
  | { readonly kind: 'map'; readonly entries: JsonObject }
  | { readonly kind: 'scalar'; readonly value: unknown }
  | { readonly kind: 'message'; readonly parts: WireReader[] };

const WIRE_TYPES: Readonly<Record<Scalar, number>> = {
  string: WIRE_BYTES,
  bytes: WIRE_BYTES,
  json: WIRE_BYTES,
  bool: VARINT,
  int32: VARINT,
  int64: VARINT,
  double: FIXED64,
};

/** Go's zero values in JSON. */
export const ZERO_VALUES: Readonly<Record<Scalar, unknown>> = {
  string: '',
  bytes: null,
  json: null,
  bool: false,
  int32: 0,
  int64: 0,
  double: 0,
};

function collect(
  type: MessageType,
  reader: WireReader,
  fields: Map<MessageField, FieldValue>,
  depth: number,
): void {
  requireDepth(depth);
  const goName = type.name.slice(type.name.lastIndexOf('.') + 1);
  for (let tag = reader.tag(goName); tag; tag = reader.tag(goName)) {
    const field = type.fields.get(tag.number);
    if (!field) reader.skip(tag.wireType);
    else readField(field, tag.wireType, reader, fields, depth);
  }
}

function readField(
  field: MessageField,
  wireType: number,
  reader: WireReader,
  fields: Map<MessageField, FieldValue>,
  depth: number,
): void {
  const found = fields.get(field);
  switch (field.label) {
    case 'list': {
      const items = found?.kind === 'list' ? found.items : [];
      readItems(field, wireType, reader, items, depth);
      // A packed list without items counts as absent.
      if (items.length > 0) fields.set(field, { kind: 'list', items });
      return;
    }
    case 'map': {
      requireWireType(field, wireType, WIRE_BYTES);
      const entries = found?.kind === 'map' ? found.entries : {};
      readEntry(field, reader.nested(), entries, depth);
      fields.set(field, { kind: 'map', entries });
      return;
    }
    case 'single': {
      if (typeof field.type === 'string') {
        requireWireType(field, wireType, WIRE_TYPES[field.type]);
        fields.set(field, { kind: 'scalar', value: readScalar(field.type, reader) });
        return;
      }
      requireWireType(field, wireType, WIRE_BYTES);
      const parts = found?.kind === 'message' ? found.parts : [];
      parts.push(reader.nested());
      fields.set(field, { kind: 'message', parts });
    }
  }
}

function readItems(
  field: MessageField,
  wireType: number,
  reader: WireReader,
  items: unknown[],
  depth: number,
): void {
  const { type } = field;
  if (typeof type !== 'string') {
    requireWireType(field, wireType, WIRE_BYTES);
    items.push(messageJson(messageTypeOf(type.message), [reader.nested()], depth + 2));
    return;
  }
  const expected = WIRE_TYPES[type];
  if (wireType === WIRE_BYTES && expected !== WIRE_BYTES) {
    // Packed encoding: numbers without tags.
    const packed = reader.nested();
    while (!packed.atEnd) items.push(readScalar(type, packed));
    return;
  }
  requireWireType(field, wireType, expected);
  items.push(readScalar(type, reader));
}

/** Reads a map entry: a message with the key as field 1 and the value as field 2, whose wire types upstream does not check. */
function readEntry(
  field: MessageField,
  reader: WireReader,
  entries: JsonObject,
  depth: number,
): void {
  const { type } = field;
  let key = '';
  let value: unknown;
  for (let tag = reader.tag('Entry'); tag; tag = reader.tag('Entry')) {
    if (tag.number === 1) {
      key = reader.text();
    } else if (tag.number !== 2) {
      reader.skip(tag.wireType);
    } else if (typeof type === 'string') {
      value = readScalar(type, reader);
    } else {
      value = messageJson(messageTypeOf(type.message), [reader.nested()], depth + 2);
    }
  }
  value ??=
    typeof type === 'string'
      ? zeroInMap(type)
      : messageJson(messageTypeOf(type.message), [], depth + 2);
  setOwn(entries, key, value);
}

/** The zero value in a map entry, where bytes are empty instead of null. */
function zeroInMap(type: Scalar): unknown {
  return type === 'bytes' ? '' : ZERO_VALUES[type];
}

function readScalar(type: Scalar, reader: WireReader): unknown {
  switch (type) {
    case 'string':
      return reader.text();
    case 'bytes':
      return reader.base64();
    case 'json':
      return parseJson(reader.text());
    case 'bool':
      return reader.bool();
    case 'int32':
      return reader.int32();
    case 'int64':
      return reader.int64();
    case 'double': {
      const value = reader.double();
      if (Number.isFinite(value)) return value;
      throw new WireError(`json: unsupported value: ${value}`);
    }
  }
}

function parseJson(text: string): unknown {
  if (text === '') return null;
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    throw new WireError(`json parse error: ${cause.message}`);
  }
}

function messageJson(type: MessageType, parts: readonly WireReader[], depth: number): unknown {
  const fields = new Map<MessageField, FieldValue>();
  for (const part of parts) collect(type, part, fields, depth);
  const members = membersOf(type, fields, depth);
  const custom = CUSTOM_JSON.get(type.name);
  return custom ? custom.toJson(members) : members;
}

function membersOf(
  type: MessageType,
  fields: ReadonlyMap<MessageField, FieldValue>,
  depth: number,
): JsonObject {
  const members: JsonObject = {};
  for (const field of type.fields.values()) {
    const value = valueOf(field, fields.get(field), depth);
    if (field.name === undefined) Object.assign(members, value);
    else if (value !== undefined) members[field.name] = value;
  }
  return members;
}

/** The JSON of a field, or undefined if it is omitted. */
function valueOf(field: MessageField, found: FieldValue | undefined, depth: number): unknown {
  const { type, label, optional, pointer } = field;
  switch (found?.kind) {
    case 'list':
      return found.items;
    case 'map':
      return found.entries;
    case 'scalar':
      return optional && !pointer && isZero(found.value) ? undefined : found.value;
    case 'message': {
      const value = messageJson(messageTypeOf(messageOf(field)), found.parts, depth + 1);
      return optional && !pointer && value === null ? undefined : value;
    }
    case undefined:
      if (optional) return undefined;
      if (pointer || label !== 'single') return null;
      return typeof type === 'string'
        ? ZERO_VALUES[type]
        : messageJson(messageTypeOf(type.message), [], depth + 1);
  }
}

function isZero(value: unknown): boolean {
  return value === '' || value === 0 || value === false || value === null;
}

function messageOf({ type }: MessageField): string {
  return typeof type === 'string' ? type : type.message;
}

/** Returns the message type `name`, which other messages refer to. */
export function messageTypeOf(name: string): MessageType {
  const type = messageType(name);
  if (!type) throw new Error(`no protobuf message named ${name}`);
  return type;
}

function requireWireType({ name = '' }: MessageField, wireType: number, expected: number): void {
  if (wireType === expected) return;
  // The Go field has the JSON name with an upper-case initial.
  const goName = name.slice(0, 1).toUpperCase() + name.slice(1);
  throw new WireError(`proto: wrong wireType = ${wireType} for field ${goName}`);
}

/** A message type: its fields by number, in JSON order. */
export interface MessageType {
  /** Package and name: `core.v1.Pod`. */
  readonly name: string;
  readonly fields: ReadonlyMap<number, MessageField>;
  /** The fields by descending number. */
  readonly descending: readonly (readonly [number: number, field: MessageField])[];
}

export interface MessageField {
  /** JSON name; undefined if the members of the value are inlined into the message. */
  readonly name: string | undefined;
  /** The keys of a map are strings; `type` is the type of its values. */
  readonly label: 'single' | 'list' | 'map';
  readonly type: Scalar | MessageReference;
  /** Name of Go's type for a text or a map, if it has one: `v1.RestartPolicy`. */
  readonly goType: string | undefined;
  /** Whether Go's zero value is omitted from the JSON. */
  readonly optional: boolean;
  /** Whether the Go field is a pointer, which is nil only if the field is not on the wire. */
  readonly pointer: boolean;
}

export type Scalar = (typeof SCALARS)[number];

interface MessageReference {
  readonly message: string;
}

const SCALARS = ['string', 'bytes', 'json', 'bool', 'int32', 'int64', 'double'] as const;

let lines: ReadonlyMap<string, readonly [alias: string, line: string]> | undefined;
const types = new Map<string, MessageType>();

/** Returns the message type `name`, or undefined if no served kind uses it. */
export function messageType(name: string): MessageType | undefined {
  const known = types.get(name);
  if (known) return known;
  lines ??= linesByName();
  const found = lines.get(name);
  if (!found) return undefined;
  const [alias, line] = found;
  const [, ...texts] = line.split('; ');
  const fields = new Map(texts.map((text) => parseField(text, alias)));
  const type = { name, fields, descending: [...fields].sort(([a], [b]) => b - a) };
  types.set(name, type);
  return type;
}

function linesByName(): ReadonlyMap<string, readonly [alias: string, line: string]> {
  const sections = PROTOBUF.trim().split('\n\n');
  return new Map(
    sections.flatMap((section) => {
      const [alias = '', ...messages] = section.split('\n');
      return messages.map((line) => [`${alias}.${line.split(';', 1)[0]}`, [alias, line]] as const);
    }),
  );
}

function parseField(text: string, alias: string): [number: number, field: MessageField] {
  const [, number, name, optional, pointer, label, type = '', goType] =
    /^(\d+) ([^ ?]+)(\??) (\*?)((?:map)?\[\])?([^=]+)(?:=(.+))?$/.exec(text) ?? [];
  const version = alias.slice(alias.indexOf('.') + 1);
  const scalar = SCALARS.find((each) => each === type);
  return [
    Number(number),
    {
      name: name === '.' ? undefined : name,
      label: label === undefined ? 'single' : label === '[]' ? 'list' : 'map',
      type: scalar ?? { message: type.includes('.') ? type : `${alias}.${type}` },
      goType: goType?.includes('.') === false ? `${version}.${goType}` : goType,
      optional: optional === '?',
      pointer: pointer === '*',
    },
  ];
}
