import type { JsonObject } from '../schema/json-value.ts';
import { requireDepth, setOwn } from '../schema/json-value.ts';
import { BYTES, FIXED64, VARINT, WireError, WireReader } from './wire-reader.ts';
import { PROTOBUF } from '../generated/protobuf.ts';
import { NOT_A_QUANTITY, canonicalQuantity } from '../builtin/quantity.ts';

/**
 * A message as the JSON that Go's encoder makes of the struct that Go's decoder makes of it: what
 * follows (defaults, validation) cannot tell whether the client sent the one or the other. Fields
 * that the type does not know are passed over, as in Go.
 *
 * @throws {WireError} if the bytes are no such message
 * @throws {NestingError} if it is nested too deeply
 */
export function decodeMessage(type: MessageType, bytes: Uint8Array): JsonObject {
  const fields = new Map<Field, Seen>();
  collect(type, new WireReader(bytes), fields, 1);
  return membersOf(type, fields, 1);
}

/** A message none of whose fields were set: an empty Go struct as JSON. */
export function emptyMessage(type: MessageType): JsonObject {
  return membersOf(type, new Map(), 1);
}

/**
 * What has been found of a field: values of a list, entries of a map, the last scalar, or all parts
 * of a message: one that comes several times is the parts in sequence.
 */
type Seen =
  | { readonly kind: 'list'; readonly items: unknown[] }
  | { readonly kind: 'map'; readonly entries: JsonObject }
  | { readonly kind: 'scalar'; readonly value: unknown }
  | { readonly kind: 'message'; readonly parts: WireReader[] };

const WIRE_TYPES: Readonly<Record<Scalar, number>> = {
  string: BYTES,
  bytes: BYTES,
  json: BYTES,
  bool: VARINT,
  int32: VARINT,
  int64: VARINT,
  double: FIXED64,
};

const ZERO_VALUES: Readonly<Record<Scalar, unknown>> = {
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
  fields: Map<Field, Seen>,
  depth: number,
): void {
  requireDepth(depth);
  const goName = type.name.slice(type.name.lastIndexOf('.') + 1);
  for (let tag = reader.tag(goName); tag; tag = reader.tag(goName)) {
    const field = type.fields.get(tag.number);
    if (!field) reader.skip(tag.wireType);
    else see(field, tag.wireType, reader, fields, depth);
  }
}

function see(
  field: Field,
  wireType: number,
  reader: WireReader,
  fields: Map<Field, Seen>,
  depth: number,
): void {
  const seen = fields.get(field);
  switch (field.label) {
    case 'list': {
      const items = seen?.kind === 'list' ? seen.items : [];
      readItems(field, wireType, reader, items, depth);
      // A list that is there but packs nothing is none.
      if (items.length > 0) fields.set(field, { kind: 'list', items });
      return;
    }
    case 'map': {
      requireWireType(field, wireType, BYTES);
      const entries = seen?.kind === 'map' ? seen.entries : {};
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
      requireWireType(field, wireType, BYTES);
      const parts = seen?.kind === 'message' ? seen.parts : [];
      parts.push(reader.nested());
      fields.set(field, { kind: 'message', parts });
    }
  }
}

function readItems(
  field: Field,
  wireType: number,
  reader: WireReader,
  items: unknown[],
  depth: number,
): void {
  const { type } = field;
  if (typeof type !== 'string') {
    requireWireType(field, wireType, BYTES);
    items.push(messageJson(typeOf(type.message), [reader.nested()], depth + 2));
    return;
  }
  const expected = WIRE_TYPES[type];
  if (wireType === BYTES && expected !== BYTES) {
    // Packed: numbers without tags.
    const packed = reader.nested();
    while (!packed.atEnd) items.push(readScalar(type, packed));
    return;
  }
  requireWireType(field, wireType, expected);
  items.push(readScalar(type, reader));
}

/** An entry is a message of a key, 1, and a value, 2. */
function readEntry(field: Field, reader: WireReader, entries: JsonObject, depth: number): void {
  const { type } = field;
  let key = '';
  let value: unknown;
  for (let tag = reader.tag('Entry'); tag; tag = reader.tag('Entry')) {
    if (tag.number === 1) {
      requireWireType(field, tag.wireType, BYTES);
      key = reader.text();
    } else if (tag.number !== 2) {
      reader.skip(tag.wireType);
    } else if (typeof type === 'string') {
      requireWireType(field, tag.wireType, WIRE_TYPES[type]);
      value = readScalar(type, reader);
    } else {
      requireWireType(field, tag.wireType, BYTES);
      value = messageJson(typeOf(type.message), [reader.nested()], depth + 2);
    }
  }
  value ??=
    typeof type === 'string' ? zeroInMap(type) : messageJson(typeOf(type.message), [], depth + 2);
  setOwn(entries, key, value);
}

/** The bytes of an entry are empty rather than absent. */
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

/** What stands in the JSON for a message. */
function messageJson(type: MessageType, parts: readonly WireReader[], depth: number): unknown {
  const fields = new Map<Field, Seen>();
  for (const part of parts) collect(type, part, fields, depth);
  const members = membersOf(type, fields, depth);
  const selfMade = SELF_MADE_JSON.get(type.name);
  return selfMade ? selfMade(members) : members;
}

function membersOf(type: MessageType, fields: ReadonlyMap<Field, Seen>, depth: number): JsonObject {
  const members: JsonObject = {};
  for (const field of type.fields.values()) {
    const value = valueOf(field, fields.get(field), depth);
    if (field.name === undefined) Object.assign(members, value);
    else if (value !== undefined) members[field.name] = value;
  }
  return members;
}

/** Undefined if the JSON does not have the field. */
function valueOf(field: Field, seen: Seen | undefined, depth: number): unknown {
  const { type, label, optional, pointer } = field;
  switch (seen?.kind) {
    case 'list':
      return seen.items;
    case 'map':
      return seen.entries;
    case 'scalar':
      return optional && !pointer && isZero(seen.value) ? undefined : seen.value;
    case 'message': {
      const value = messageJson(typeOf(messageOf(field)), seen.parts, depth + 1);
      return optional && !pointer && value === null ? undefined : value;
    }
    case undefined:
      if (optional) return undefined;
      if (pointer || label !== 'single') return null;
      return typeof type === 'string'
        ? ZERO_VALUES[type]
        : messageJson(typeOf(type.message), [], depth + 1);
  }
}

function isZero(value: unknown): boolean {
  return value === '' || value === 0 || value === false || value === null;
}

function messageOf({ type }: Field): string {
  return typeof type === 'string' ? type : type.message;
}

function typeOf(name: string): MessageType {
  const type = messageType(name);
  if (!type) throw new Error(`There is no message ${name}`);
  return type;
}

function requireWireType({ name = '' }: Field, wireType: number, expected: number): void {
  if (wireType === expected) return;
  // Go's field has the name that JSON has, in upper case.
  const goName = name.slice(0, 1).toUpperCase() + name.slice(1);
  throw new WireError(`proto: wrong wireType = ${wireType} for field ${goName}`);
}

/** A kind of message: its fields by number, in the order in which JSON has them. */
export interface MessageType {
  /** Package and name: `core.v1.Pod`. */
  readonly name: string;
  readonly fields: ReadonlyMap<number, Field>;
}

export interface Field {
  /** In JSON; undefined if the members of its value are members of the message itself. */
  readonly name: string | undefined;
  /** A map's keys are strings; `type` is that of its values. */
  readonly label: 'single' | 'list' | 'map';
  readonly type: Scalar | MessageReference;
  /** Left out of the JSON when it has Go's zero value. */
  readonly optional: boolean;
  /** Zero only when it is not on the wire. */
  readonly pointer: boolean;
}

export type Scalar = (typeof SCALARS)[number];

interface MessageReference {
  readonly message: string;
}

const SCALARS = ['string', 'bytes', 'json', 'bool', 'int32', 'int64', 'double'] as const;

let types: ReadonlyMap<string, MessageType> | undefined;

/** The message of that name; undefined if no kind that the server has uses it. */
export function messageType(name: string): MessageType | undefined {
  types ??= new Map(
    PROTOBUF.trim()
      .split('\n\n')
      .map(parseMessage)
      .map((type) => [type.name, type]),
  );
  return types.get(name);
}

function parseMessage(section: string): MessageType {
  const [name = '', ...lines] = section.split('\n');
  return { name, fields: new Map(lines.map(parseField)) };
}

function parseField(line: string): [number: number, field: Field] {
  const [, number, name, optional, pointer, label, type = ''] =
    /^(\d+) ([^ ?]+)(\??) (\*?)((?:map)?\[\])?(.+)$/.exec(line) ?? [];
  const scalar = SCALARS.find((each) => each === type);
  return [
    Number(number),
    {
      name: name === '.' ? undefined : name,
      label: label === undefined ? 'single' : label === '[]' ? 'list' : 'map',
      type: scalar ?? { message: type },
      optional: optional === '?',
      pointer: pointer === '*',
    },
  ];
}

/** Of 1 January of the year 1, which is Go's zero time, and of the year 10000. */
const ZERO_SECONDS = -62_135_596_800;
const END_SECONDS = 253_402_300_800;

const MICROS = 1_000_000;

/**
 * The Go types that write their JSON themselves, by message name: from the fields that were on the
 * wire to what stands in the JSON.
 */
const SELF_MADE_JSON: ReadonlyMap<string, (fields: Readonly<JsonObject>) => unknown> = new Map<
  string,
  (fields: Readonly<JsonObject>) => unknown
>([
  ['resource.Quantity', quantity],
  ['intstr.IntOrString', intOrString],
  ['meta.v1.Time', time],
  ['meta.v1.MicroTime', microTime],
  ['meta.v1.FieldsV1', ({ Raw }) => Raw ?? null],
  ['apiextensions.v1.JSON', ({ raw }) => raw ?? null],
  [
    'apiextensions.v1.JSONSchemaPropsOrArray',
    ({ schema, jSONSchemas }) => jSONSchemas ?? schema ?? null,
  ],
  ['apiextensions.v1.JSONSchemaPropsOrBool', ({ schema, allows }) => schema ?? allows === true],
  [
    'apiextensions.v1.JSONSchemaPropsOrStringArray',
    ({ schema, property }) => property ?? schema ?? null,
  ],
  ['authentication.v1.ExtraValue', ({ items }) => items ?? []],
  ['authorization.v1.ExtraValue', ({ items }) => items ?? []],
]);

/** In the one form that a quantity has, as Go writes it. */
function quantity({ string = '0' }: Readonly<JsonObject>): string {
  const canonical = typeof string === 'string' ? canonicalQuantity(string) : undefined;
  if (canonical === undefined) throw new WireError(NOT_A_QUANTITY);
  return canonical;
}

function intOrString({ type = 0, intVal = 0, strVal = '' }: Readonly<JsonObject>): unknown {
  if (type === 0) return intVal;
  if (type === 1) return strVal;
  throw new WireError('impossible IntOrString.Type');
}

/** `2006-01-02T15:04:05Z`; null for Go's zero time. The fraction is not looked at. */
function time({ seconds }: Readonly<JsonObject>): string | null {
  if (seconds === undefined) return null;
  const text = dateTime(numberOf(seconds));
  return text && `${text}Z`;
}

/** `2006-01-02T15:04:05.000000Z` */
function microTime({ seconds, nanos }: Readonly<JsonObject>): string | null {
  if (seconds === undefined && nanos === undefined) return null;
  const micros = Math.trunc(numberOf(nanos) / 1000);
  const carry = Math.floor(micros / MICROS);
  const text = dateTime(numberOf(seconds) + carry);
  return text && `${text}.${String(micros - carry * MICROS).padStart(6, '0')}Z`;
}

function dateTime(seconds: number): string | null {
  if (seconds === ZERO_SECONDS) return null;
  if (seconds < ZERO_SECONDS || seconds >= END_SECONDS) {
    throw new WireError('Time.MarshalJSON: year outside of range [0,9999]');
  }
  return new Date(seconds * 1000).toISOString().slice(0, -'.000Z'.length);
}

function numberOf(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}
