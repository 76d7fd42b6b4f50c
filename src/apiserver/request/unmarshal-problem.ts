import type { MessageField, MessageType } from '../protobuf/decode-message.ts';
import { messageTypeOf } from '../protobuf/decode-message.ts';
import type { FieldError } from '../../api/field-error.ts';
import { NOT_A_QUANTITY, quantityProblem } from '../../api/quantity.ts';
import { utf8Length } from '../../util/bytes.ts';
import { goNumber } from '../../util/go-format.ts';
import { goQuote } from '../../util/go-quote.ts';
import { isRecord } from '../../util/values.ts';
import { goTypeOf } from '../json/go-json.ts';
import { NumberText } from '../../util/number-text.ts';
import { MICRO_TIME, QUANTITY, TIME } from '../../api/formats.ts';
import { parseGoTime } from '../../api/go-time.ts';
import type { JsonSchema } from '../../api/json-schema.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { own } from '../../util/json-value.ts';

/** A kind with its schema and its message, which has the names of Go's types. */
export interface GoKind {
  readonly kind: string;
  readonly schema: JsonSchema;
  readonly message: MessageType | undefined;
}

/**
 * Returns the message of Go's decoder for a value of the wrong type in a built-in kind. The path in
 * it has field names, but neither map keys nor list indices.
 *
 * @param error the schema error of the value
 */
export function unmarshalProblem(error: FieldError, object: unknown, kind: GoKind): string {
  const { path, struct, type, value } = mismatchOf(error, object, kind);
  const problem = textProblem(error, value);
  if (problem !== undefined) return problem;
  if (type === QUANTITY) return NOT_A_QUANTITY;
  const isInteger = /^int\d/.test(type);
  const found = isInteger ? numberOf(value) : goTypeOf(value);
  return `json: cannot unmarshal ${found} into Go struct field ${[struct, ...path].join('.')} of type ${type}`;
}

function numberOf(value: unknown): string {
  if (value instanceof NumberText) return `number ${value.text}`;
  return typeof value === 'number' ? `number ${goNumber(value)}` : goTypeOf(value);
}

const TIME_LAYOUTS = [
  [TIME, 'seconds'],
  [MICRO_TIME, 'micros'],
] as const;

/** Returns the message for a text that is not base64, a quantity or a time, and undefined for other values. */
function textProblem({ detail }: FieldError, value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined;
  if (detail.includes(' must be of type byte')) return base64Problem(value);
  if (detail.includes(` must be of type ${QUANTITY}`)) return quantityProblem(value);
  for (const [type, layout] of TIME_LAYOUTS) {
    if (!detail.includes(` must be of type ${type}`)) continue;
    const problem = parseGoTime(value, layout);
    if (typeof problem === 'string') return problem;
  }
  return undefined;
}

/** The detail of a number that does not fit its format, which has the path in its text. */
const OUT_OF_RANGE = /^Checked value must be of type \w+ with format \w+ in (.*)$/s;

/** Whether a number does not fit the type of its field. */
export function isOutOfRange({ detail }: Pick<FieldError, 'detail'>): boolean {
  return OUT_OF_RANGE.test(detail);
}

/**
 * Whether Go's decoder ends at a value: types with their own decoder end it.
 *
 * @param before the error before that of the value, which tells that it has none of several types
 */
export function endsDecoding({ field, detail }: FieldError, before?: FieldError): boolean {
  if (before?.detail.startsWith(`${goQuote(field)} must validate one and only one `)) return true;
  return [TIME, MICRO_TIME, QUANTITY].some((type) => detail.includes(` must be of type ${type}: `));
}

interface Struct {
  readonly name: string;
  readonly type: MessageType | undefined;
}

function structOf({ type }: MessageField): Struct | undefined {
  if (typeof type === 'string') return undefined;
  return { name: type.message.split('.').at(-1) ?? '', type: messageTypeOf(type.message) };
}

interface FoundField {
  readonly field: MessageField;
  /** Names of the structs that are embedded between the message and the field. */
  readonly embedded: readonly string[];
}

/** Returns the field of a message, or of a message whose members are inlined. */
function findField({ fields }: MessageType, name: string): FoundField | undefined {
  for (const field of fields.values()) {
    if (field.name === name) return { field, embedded: [] };
    const inlined = field.name === undefined ? structOf(field) : undefined;
    const found = inlined?.type && findField(inlined.type, name);
    if (found) return { ...found, embedded: [inlined.name, ...found.embedded] };
  }
  return undefined;
}

/** `core.v1.PodSpec` as `v1.PodSpec`. */
function packaged(name: string): string {
  return name.split('.').slice(-2).join('.');
}

/** Returns the message of Go's decoder for text that is not base64. */
export function base64Problem(text: string): string {
  const wrong = utf8Length(text.slice(0, base64Fault(text)));
  return `illegal base64 data at input byte ${wrong}`;
}

/** Returns where Go's decoder of base64 ends. */
function base64Fault(text: string): number {
  let index = 0;
  // The place in a group of four characters.
  let place = 0;
  while (index < text.length && text[index] !== '=') {
    const character = text[index] ?? '';
    if (/[A-Za-z0-9+/]/.test(character)) place = (place + 1) % 4;
    else if (!/[\r\n]/.test(character)) return index;
    index++;
  }
  if (index === text.length) return index - place;
  if (place < 2) return index;
  const afterLines = (from: number) => from + (/^[\r\n]*/.exec(text.slice(from))?.[0].length ?? 0);
  const next = afterLines(index + 1);
  if (place === 3 || next === text.length) return next;
  return text[next] === '=' ? afterLines(next + 1) : next - 1;
}

/**
 * Returns the message of Go's converter for the message of its decoder about base64, a fraction, or a value of a type that
 * decodes itself. The types of other values are checked before the conversion.
 */
export function convertedProblem(problem: string): string {
  if (problem.startsWith('illegal base64')) return `error decoding from json: ${problem}`;
  return problem
    .replace(/^json: cannot unmarshal number .* of type (?=int\d+$)/, 'cannot convert float64 to ')
    .replace(/(?<=into Go )struct field \S+ (?=of type (?:int32|string)$)/, 'value ');
}

/** Returns the message of Go's converter from maps, which strategic merge patches use, for such a value. */
export function conversionProblem(error: FieldError, object: unknown, kind: GoKind): string {
  const { type, plainType, value, decodesItself } = mismatchOf(error, object, kind);
  const problem = textProblem(error, value);
  if (problem !== undefined) return convertedProblem(problem);
  if (type === QUANTITY) return NOT_A_QUANTITY;
  if (decodesItself) {
    const found = type === 'int32' ? numberOf(value) : goTypeOf(value);
    return `json: cannot unmarshal ${found} into Go value of type ${type}`;
  }
  const from = converterKindOf(value);
  if (plainType.startsWith('map[')) return `cannot restore map from ${from}`;
  if (plainType.startsWith('[]')) return `cannot restore slice from ${from}`;
  if (plainType === 'struct') return `cannot restore struct from: ${from}`;
  const isText = plainType === 'string';
  // Go converts numbers to other types of numbers, and integers to text.
  const isConvertible = isText ? from === 'int64' : typeof value === 'number' && /\d$/.test(type);
  if (isConvertible) return `cannot convert ${from} to ${type}`;
  return `unrecognized type: ${plainType}`;
}

/** Returns the kind of a JSON value in a map of Go. */
function converterKindOf(value: unknown): string {
  if (typeof value === 'number') return Number.isInteger(value) ? 'int64' : 'float64';
  if (typeof value === 'object') return Array.isArray(value) ? 'slice' : 'map';
  return goTypeOf(value);
}

interface Mismatch {
  readonly path: readonly string[];
  /** Name of the struct with the last field of the path. */
  readonly struct: string;
  /** Go type of the field. */
  readonly type: string;
  /** The type without its name: `struct`. */
  readonly plainType: string;
  /** Whether the type is a time or an integer that may be a text. */
  readonly decodesItself: boolean;
  readonly value: unknown;
}

function mismatchOf(
  error: FieldError,
  object: unknown,
  { kind, schema, message }: GoKind,
): Mismatch {
  const path: string[] = [];
  let struct: Struct = { name: kind, type: message };
  let field: MessageField | undefined;
  let at = schema;
  let value = object;
  const enter = (indices: readonly string[], member: JsonSchema, from: unknown) => {
    at = indices.reduce((list: JsonSchema) => list.items ?? {}, member);
    value = indices.reduce(
      (list: unknown, index) =>
        Array.isArray(list) ? (list[Number.parseInt(index)] as unknown) : {},
      from,
    );
  };
  let rest = isOutOfRange(error) ? (OUT_OF_RANGE.exec(error.detail)?.[1] ?? '') : error.field;
  while (rest !== '') {
    const [step = ''] = rest.split('.', 1);
    const [name = '', ...indices] = step.split('[');
    const property = Object.hasOwn(at.properties ?? {}, name) ? at.properties?.[name] : undefined;
    const values = valuesOf(at);
    if (property) {
      if (field) struct = structOf(field) ?? struct;
      const found = struct.type && findField(struct.type, name);
      field = found?.field;
      for (const step of [...(found?.embedded ?? []), name]) path.push(step);
      enter(indices, property, isRecord(value) ? own(value, name) : undefined);
      rest = rest.slice(step.length + 1);
    } else if (values && isRecord(value)) {
      // A map key may contain dots.
      const key = keyAt(value, rest);
      const [within = ''] = rest.slice(key.length).split('.', 1);
      enter(within.split('[').slice(1), values, own(value, key));
      rest = rest.slice(key.length + within.length + 1);
    } else break;
  }
  const decodesItself = ['int-or-string', TIME, MICRO_TIME].includes(at.format ?? '');
  const type = goTypeIn(field, at);
  return { path, struct: struct.name, type, plainType: goType(at), decodesItself, value };
}

/** Returns the longest key of a map with which a path starts. */
function keyAt(map: JsonObject, path: string): string {
  const keys = Object.keys(map).filter(
    (key) => path === key || path.startsWith(`${key}.`) || path.startsWith(`${key}[`),
  );
  return keys.reduce((longest, key) => (key.length > longest.length ? key : longest), '');
}

/** Returns the Go type of a value in a field, which may be in a list or map of the field. */
function goTypeIn(field: MessageField | undefined, schema: JsonSchema): string {
  const type = goType(schema);
  if (field?.goType !== undefined && field.label === 'map') {
    return type.startsWith('map[') ? field.goType : type;
  }
  const member = field && structOf(field);
  // As in Go, where a struct has the package of its version: `v1.PodSpec`.
  // A message without fields in JSON, such as `v1.ExtraValue`, is a list.
  if (member?.type) return type.replace(/struct|\[\]string$/, packaged(member.type.name));
  return field?.goType === undefined ? type : type.replace(/string$/, field.goType);
}

function valuesOf({ additionalProperties }: JsonSchema): JsonSchema | undefined {
  return typeof additionalProperties === 'object' ? additionalProperties : undefined;
}

function goType(schema: JsonSchema): string {
  switch (schema.type) {
    case 'boolean':
      return 'bool';
    case 'integer':
      return schema.format ?? 'int64';
    case 'number':
      return 'float64';
    case 'array':
      return `[]${goType(schema.items ?? {})}`;
    case 'object': {
      const values = valuesOf(schema);
      return values ? `map[string]${goType(values)}` : 'struct';
    }
    default:
      if (schema.oneOf) return schema.format === 'int-or-string' ? 'int32' : QUANTITY;
      return schema.format === 'byte' ? '[]uint8' : (schema.type ?? 'interface {}');
  }
}
