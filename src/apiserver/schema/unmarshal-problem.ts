import type { Field, MessageType } from '../protobuf/decode-message.ts';
import { typeOf } from '../protobuf/decode-message.ts';
import type { FieldError } from '../../api/field-error.ts';
import { NOT_A_QUANTITY } from '../../api/quantity.ts';
import { goQuote } from '../../util/go-quote.ts';
import { MICRO_TIME, QUANTITY } from './formats.ts';
import type { JsonSchema } from './json-schema.ts';

/**
 * Returns the message of Go's decoder for a value of the wrong type in a built-in kind. The path in
 * it has field names, but neither map keys nor list indices.
 *
 * @param error the schema error of the value
 * @param message the message of the kind, which has the names of Go's structs
 */
export function unmarshalProblem(
  error: FieldError,
  kind: string,
  schema: JsonSchema,
  message: MessageType | undefined,
): string {
  const problem = textProblem(error);
  if (problem !== undefined) return problem;
  const { path, type, value } = mismatchOf(error, schema);
  let struct: Struct = { name: kind, type: message };
  let field: Field | undefined;
  for (const name of path) {
    if (field) struct = structOf(field) ?? struct;
    field = struct.type && fieldOf(struct.type, name);
  }
  const member = field && structOf(field);
  // As in Go, where a struct has the package of its version: `v1.PodSpec`.
  const goType = member?.type ? type.replace('struct', packaged(member.type.name)) : type;
  return `json: cannot unmarshal ${value} into Go struct field ${[struct.name, ...path].join('.')} of type ${goType}`;
}

/** Returns the message for a text that is not base64, a quantity or a time, and undefined for values of other types. */
function textProblem({ badValue, detail }: FieldError): string | undefined {
  const text = String(badValue);
  // A value of another type is reported by the name of its type or format.
  if (/^(?:integer|number|boolean|array|object|int64|float64)$/.test(text)) return undefined;
  if (detail.includes(' must be of type byte')) return base64Problem(text);
  if (detail.includes(` must be of type ${QUANTITY}`)) return NOT_A_QUANTITY;
  if (detail.includes(` must be of type ${MICRO_TIME}`)) return timeProblem(text, ['.000000']);
  return detail.includes(' must be of type date-time') ? timeProblem(text) : undefined;
}

/** Whether Go's decoder ends at a value: types with their own decoder end it. */
export function endsDecoding(error: FieldError): boolean {
  return textProblem(error) !== undefined && !error.detail.includes(' must be of type byte');
}

interface Struct {
  readonly name: string;
  readonly type: MessageType | undefined;
}

function structOf({ type }: Field): Struct | undefined {
  if (typeof type === 'string') return undefined;
  return { name: type.message.split('.').at(-1) ?? '', type: typeOf(type.message) };
}

/** Returns the field of a message, or of a message whose members are inlined. */
function fieldOf({ fields }: MessageType, name: string): Field | undefined {
  for (const field of fields.values()) {
    if (field.name === name) return field;
    const inlined = field.name === undefined ? structOf(field)?.type : undefined;
    const found = inlined && fieldOf(inlined, name);
    if (found) return found;
  }
  return undefined;
}

/** `core.v1.PodSpec` as `v1.PodSpec`. */
function packaged(name: string): string {
  return name.split('.').slice(-2).join('.');
}

/** Returns the message of Go's decoder for text that is not base64. */
export function base64Problem(text: string): string {
  const padding = text.indexOf('=');
  const end = padding < 0 ? text.length : padding;
  const wrong =
    /[^A-Za-z0-9+/\r\n]/.exec(text.slice(0, end))?.index ?? (padding < 0 ? end - (end % 4) : end);
  return `illegal base64 data at input byte ${wrong}`;
}

/** The parts of a time, in Go's layout. */
const TIME_PARTS = ['2006', '-', '01', '-', '02', 'T', '15', ':', '04', ':', '05'];

/** Returns the message of Go's decoder for text that is not a time. `fraction` is the layout of its fraction, if it needs one. */
export function timeProblem(text: string, fraction: readonly string[] = []): string {
  let rest = text;
  const parts = [...TIME_PARTS, ...fraction, 'Z07:00'];
  const failed = parts.find((part) => {
    const form =
      part === 'Z07:00'
        ? /^(?:Z|[-+]\d\d:\d\d)$/
        : new RegExp(`^${part.replace('.', '\\.').replace(/\d/g, '\\d')}`);
    const [found] = form.exec(rest) ?? [];
    if (found !== undefined) rest = rest.slice(found.length);
    return found === undefined;
  });
  const why =
    failed === undefined ? 'out of range' : `cannot parse ${goQuote(rest)} as ${goQuote(failed)}`;
  return `parsing time ${goQuote(text)}${failed === undefined ? '' : ` as "${parts.join('')}"`}: ${why}`;
}

/** Returns the message of Go's converter for text, which names the decoder of base64. */
export function convertedProblem(problem: string): string {
  return problem.startsWith('illegal base64') ? `error decoding from json: ${problem}` : problem;
}

/** Returns the message of Go's converter from maps, which strategic merge patches use, for such a value. */
export function conversionProblem(error: FieldError, schema: JsonSchema): string {
  const problem = textProblem(error);
  if (problem !== undefined) return convertedProblem(problem);
  const { type, value } = mismatchOf(error, schema);
  const from = KINDS.get(value) ?? value;
  if (type.startsWith('map[')) return `cannot restore map from ${from}`;
  if (type.startsWith('[]')) return `cannot restore slice from ${from}`;
  if (type === 'struct') return `cannot restore struct from: ${from}`;
  if (type === 'string' && from === 'int64') return 'cannot convert int64 to string';
  return `unrecognized type: ${type}`;
}

/** The Go kinds of JSON types in maps. */
const KINDS: ReadonlyMap<string, string> = new Map([
  ['number', 'int64'],
  ['object', 'map'],
  ['array', 'slice'],
]);

interface Mismatch {
  readonly path: readonly string[];
  /** Go type of the field. */
  readonly type: string;
  /** JSON type of the value. */
  readonly value: string;
}

function mismatchOf({ field, badValue }: FieldError, schema: JsonSchema): Mismatch {
  const path: string[] = [];
  let at: JsonSchema = schema;
  for (const step of field.split('.')) {
    const [name = '', ...indices] = step.split('[');
    const property = Object.hasOwn(at.properties ?? {}, name) ? at.properties?.[name] : undefined;
    const member = property ?? valuesOf(at);
    if (!member) break;
    if (property) path.push(name);
    at = indices.reduce((list: JsonSchema) => list.items ?? {}, member);
    // A map key may contain dots.
    if (!property) break;
  }
  return { path, type: goType(at), value: VALUES.get(String(badValue)) ?? String(badValue) };
}

/** The names of JSON types in Go's decoder that differ from the schema's. */
const VALUES: ReadonlyMap<string, string> = new Map([
  ['integer', 'number'],
  ['int64', 'number'],
  ['float64', 'number'],
  ['boolean', 'bool'],
]);

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
      return schema.format === 'byte' ? '[]uint8' : (schema.type ?? 'interface {}');
  }
}
