import { oncePerObject } from '../../util/memo.ts';
import type { MessageField, MessageType } from './decode-message.ts';
import { messageType } from './decode-message.ts';
import { MICRO_TIME, QUANTITY, TIME } from '../../api/formats.ts';
import type { JsonSchema } from '../../api/json-schema.ts';
import { objectMetaSchema } from '../schema/builtin-schemas.ts';

/**
 * Returns the schema of a built-in kind with two sets of defaults:
 *
 * - Fields that Go's encoder always writes have their zero value: nested structs, numbers, booleans, texts, and null
 *   for pointers, times, lists and maps.
 * - The given ones, by path.
 *
 * No field is required: Go decodes an object without it, and the rules of the kind may refuse that.
 *
 * @param message the kind's protobuf message, which has Go's encoding of each field
 * @param defaults values by path: `spec.replicas`, `webhooks[].failurePolicy`
 * @throws {Error} if a path leads to no field
 */
export function goSchema(
  schema: JsonSchema,
  message: MessageType | undefined,
  defaults: Readonly<Record<string, unknown>>,
): JsonSchema {
  const { properties = {}, required: _, ...rest } = schema;
  const copies: Copies = new Map();
  const fields = Object.entries(properties).map(([name, field]) => {
    if (name === 'metadata') return [name, goMetadataSchema()];
    const known = fieldOf(message, name);
    return [name, known ? withZero(field, known, copies) : field];
  });
  let result: JsonSchema = { ...rest, properties: Object.fromEntries(fields) };
  for (const [path, value] of Object.entries(defaults)) {
    result = withDefault(result, path.replaceAll('[]', '.[]').split('.'), value);
  }
  return result;
}

let metadataSchema: JsonSchema | undefined;

/** Returns the schema of the metadata of an object, whose absent fields the server sets. */
export function goMetadataSchema(): JsonSchema {
  metadataSchema ??= copy(objectMetaSchema(), messageType('meta.v1.ObjectMeta'), new Map());
  return metadataSchema;
}

const QUANTITY_SCHEMA: JsonSchema = {
  oneOf: [{ type: 'string', format: QUANTITY }, { type: 'number' }],
};

const INT_OR_STRING_SCHEMA: JsonSchema = {
  format: 'int-or-string',
  oneOf: [{ type: 'integer', format: 'int32' }, { type: 'string' }],
};

const ANY_JSON: JsonSchema = {
  'x-kubernetes-preserve-unknown-fields': true,
  'x-kubernetes-map-type': 'atomic',
};

type Copies = Map<MessageType, Map<JsonSchema, JsonSchema>>;

/** The schema of a field, with its zero value if Go always writes it. */
function withZero(schema: JsonSchema, field: MessageField, copies: Copies): JsonSchema {
  const copied = typeof field.type === 'string' ? schema : inside(schema, field, copies);
  // Behind a pointer, Go sets also a default that is a zero value.
  if (field.pointer && (copied.zero ?? null) !== null) return { ...copied, default: copied.zero };
  if (field.optional || copied.default !== undefined) return copied;
  const isNull = field.pointer || field.label !== 'single' || isTime(field.type);
  if (isNull) return { ...copied, ...NULL };
  const zero = zeroOf(copied, field);
  return zero === undefined ? copied : { ...copied, default: zero };
}

const NULL: JsonSchema = { nullable: true, zero: null };

function isTime(type: MessageField['type']): boolean {
  return typeof type === 'object' && (type.message === TIME || type.message === MICRO_TIME);
}

/** The schema of a message, a list or a map of messages. */
function inside(schema: JsonSchema, field: MessageField, copies: Copies): JsonSchema {
  const { type, label } = field;
  const message = typeof type === 'string' ? undefined : messageType(type.message);
  const { items, additionalProperties } = schema;
  if (label === 'list' && items) return { ...schema, items: copy(items, message, copies) };
  if (label === 'map' && typeof additionalProperties === 'object') {
    const values = copy(additionalProperties, message, copies);
    return { ...schema, additionalProperties: values };
  }
  return label === 'single' ? copy(schema, message, copies) : schema;
}

/** Messages that keep any JSON. One manager owns all of it, as in the schemas of Kubernetes. */
const ANY: ReadonlySet<string> = new Set(['meta.v1.FieldsV1', 'runtime.RawExtension']);

/** Schemas are shared and may contain themselves: each is copied once for each message. */
function copy(schema: JsonSchema, message: MessageType | undefined, copies: Copies): JsonSchema {
  if (message?.name === QUANTITY) return QUANTITY_SCHEMA;
  if (message?.name === 'intstr.IntOrString') return INT_OR_STRING_SCHEMA;
  if (message && ANY.has(message.name)) return ANY_JSON;
  if (message?.name === TIME || message?.name === MICRO_TIME) {
    // A pointer may refer to the zero time, which is null.
    return { type: 'string', format: message.name, nullable: true };
  }
  const { properties, required: _, ...rest } = schema;
  if (!message || !properties) return schema;
  const ofMessage = copies.get(message) ?? new Map<JsonSchema, JsonSchema>();
  copies.set(message, ofMessage);
  const known = ofMessage.get(schema);
  if (known) return known;
  const node = {};
  ofMessage.set(schema, node);
  const fields = Object.entries(properties).map(([name, property]) => {
    const field = fieldOf(message, name);
    return [name, field ? withZero(property, field, copies) : property];
  });
  return Object.assign(node, rest, { properties: Object.fromEntries(fields) });
}

/** Undefined for most types with their own JSON, and for bytes, whose zero value is null. */
function zeroOf(schema: JsonSchema, field: MessageField): unknown {
  if (schema === INT_OR_STRING_SCHEMA) return 0;
  const { type, properties, format } = schema;
  switch (field.type) {
    case 'string':
      return format === undefined && type === 'string' ? '' : undefined;
    case 'bool':
      return false;
    case 'int32':
    case 'int64':
    case 'double':
      return 0;
    case 'bytes':
    case 'json':
      return undefined;
    default:
      return type === 'object' && properties ? {} : undefined;
  }
}

const fieldsByName = oncePerObject(
  (message: MessageType): ReadonlyMap<string, MessageField> =>
    new Map(fieldsInJson(message).map((field) => [field.name ?? '', field])),
);

function fieldOf(message: MessageType | undefined, name: string): MessageField | undefined {
  return message && fieldsByName(message).get(name);
}

/** Returns the fields of a message in JSON: also those that embedded messages declare. */
export function fieldsInJson({ fields }: MessageType): readonly MessageField[] {
  return [...fields.values()].flatMap((field) => {
    const { name, type } = field;
    if (name !== undefined || typeof type === 'string') return [field];
    const embedded = messageType(type.message);
    return embedded ? fieldsInJson(embedded) : [];
  });
}

/** A copy of the schema with a default at the end of the path. */
function withDefault(
  schema: JsonSchema,
  [name = '', ...rest]: readonly string[],
  value: unknown,
): JsonSchema {
  const { items, properties } = schema;
  if (name === '[]') {
    if (!items) throw new Error(`No list before ${rest.join('.')}`);
    return { ...schema, items: withDefault(items, rest, value) };
  }
  const field = properties?.[name];
  if (!field) throw new Error(`No field ${name}`);
  const own = value === null ? NULL : { default: value };
  const changed = rest.length > 0 ? withDefault(field, rest, value) : { ...field, ...own };
  return { ...schema, properties: { ...properties, [name]: changed } };
}
