import { dump } from 'js-yaml';
import { isRecord } from '../../util/values.ts';
import { BYTES, FIXED64, VARINT } from '../protobuf/wire-reader.ts';
import type { JsonObject } from '../schema/json-value.ts';

/**
 * OpenAPI documents as protobuf, in the messages of gnostic that Go clients read
 * (github.com/google/gnostic-models, `openapi.v2.Document` and `openapi.v3.Document`). The tables name the
 * fields that the documents of this server have.
 */

/** Appends a field with this value; nothing for values that protobuf omits. */
type Field = (value: unknown, output: Output) => void;

type Message = (object: JsonObject, output: Output) => void;

type Output = Uint8Array[];

export function encodeSwagger(document: JsonObject): Uint8Array {
  return bytesOf((output) => swagger(document, output));
}

export function encodeOpenApi(document: JsonObject): Uint8Array {
  return bytesOf((output) => openApi(document, output));
}

function bytesOf(write: (output: Output) => void): Uint8Array {
  const output: Output = [];
  write(output);
  return Buffer.concat(output);
}

function varint(value: number): Uint8Array {
  const bytes: number[] = [];
  let rest = value;
  while (rest > 0x7f) {
    bytes.push((rest % 0x80) | 0x80);
    rest = Math.floor(rest / 0x80);
  }
  return Uint8Array.from([...bytes, rest]);
}

const tag = (number: number, type: number): Uint8Array => varint(number * 8 + type);

function delimited(number: number, bytes: Uint8Array, output: Output): void {
  output.push(tag(number, BYTES), varint(bytes.byteLength), bytes);
}

function string(number: number): Field {
  return (value, output) => {
    if (typeof value === 'string' && value !== '') delimited(number, Buffer.from(value), output);
  };
}

function bool(number: number): Field {
  return (value, output) => {
    if (value === true) output.push(tag(number, VARINT), Uint8Array.of(1));
  };
}

function integer(number: number): Field {
  return (value, output) => {
    if (typeof value === 'number' && value > 0) output.push(tag(number, VARINT), varint(value));
  };
}

function double(number: number): Field {
  return (value, output) => {
    if (typeof value !== 'number' || value === 0) return;
    const bytes = Buffer.alloc(8);
    bytes.writeDoubleLE(value);
    output.push(tag(number, FIXED64), bytes);
  };
}

const yaml = string(2);

/** Any JSON value, as YAML. */
function any(number: number): Field {
  return (value, output) => {
    if (value !== undefined) part(number, output, (inner) => yaml(yamlText(value), inner));
  };
}

function yamlText(value: unknown): string {
  if (typeof value !== 'object') return `${JSON.stringify(value)}\n`;
  return dump(value, { noRefs: true, lineWidth: -1, seqNoIndent: true });
}

/** Appends what `write` writes as a field. */
function part(number: number, output: Output, write: (part: Output) => void): void {
  delimited(number, bytesOf(write), output);
}

function nested(number: number, type: Message): Field {
  return (value, output) => {
    if (isRecord(value)) part(number, output, (inner) => type(value, inner));
  };
}

/** A message with one field for the whole value, such as an alternative of a `oneof`. */
function wrapped(number: number, field: Field): Field {
  return (value, output) => {
    if (value !== undefined) part(number, output, (inner) => field(value, inner));
  };
}

function repeated(field: Field): Field {
  return (value, output) => {
    if (Array.isArray(value)) for (const item of value as readonly unknown[]) field(item, output);
  };
}

/** The members of an object as repeated messages with a name and a value. */
function named(number: number, field: Field): Field {
  return (value, output) => {
    if (!isRecord(value)) return;
    for (const [name, member] of Object.entries(value)) {
      part(number, output, (entry) => {
        string(1)(name, entry);
        field(member, entry);
      });
    }
  };
}

/** A message of these fields. Members that start with `x-` are extensions in field `extensions`. */
function message(fields: Readonly<Record<string, Field>>, extensions?: number): Message {
  const extension = extensions === undefined ? undefined : named(extensions, any(2));
  return (object, output) => {
    for (const [name, value] of Object.entries(object)) {
      if (Object.hasOwn(fields, name)) fields[name]?.(value, output);
      else if (name.startsWith('x-')) extension?.({ [name]: value }, output);
    }
  };
}

/** Chooses by whether the value is a reference, which has no other fields in version 3. */
function schemaOrReference(number: number): Field {
  const schema = nested(1, anySchema3);
  const reference = nested(2, message({ $ref: string(1) }));
  return wrapped(number, (value, output) => {
    if (isRecord(value) && '$ref' in value) reference(value, output);
    else schema(value, output);
  });
}

function additional(number: number, schema: Field): Field {
  return wrapped(number, (value, output) => {
    if (typeof value === 'boolean') bool(2)(value, output);
    else schema(value, output);
  });
}

// Schemas contain themselves.
function anySchema2(object: JsonObject, output: Output): void {
  schema2(object, output);
}

function anySchema3(object: JsonObject, output: Output): void {
  schema3(object, output);
}

const schema2: Message = message(
  {
    $ref: string(1),
    format: string(2),
    title: string(3),
    description: string(4),
    multipleOf: double(6),
    maximum: double(7),
    exclusiveMaximum: bool(8),
    minimum: double(9),
    exclusiveMinimum: bool(10),
    maxLength: integer(11),
    minLength: integer(12),
    pattern: string(13),
    maxItems: integer(14),
    minItems: integer(15),
    uniqueItems: bool(16),
    maxProperties: integer(17),
    minProperties: integer(18),
    required: repeated(string(19)),
    enum: repeated(any(20)),
    additionalProperties: additional(21, nested(1, anySchema2)),
    type: wrapped(22, string(1)),
    items: wrapped(23, nested(1, anySchema2)),
    properties: wrapped(25, named(1, nested(2, anySchema2))),
  },
  31,
);

const bodyParameter = message({
  description: string(1),
  name: string(2),
  in: string(3),
  required: bool(4),
  schema: nested(5, anySchema2),
});

const pathParameter = message({
  required: bool(1),
  in: string(2),
  description: string(3),
  name: string(4),
  type: string(5),
  uniqueItems: bool(19),
});

const queryParameter = message({
  required: bool(1),
  in: string(2),
  description: string(3),
  name: string(4),
  type: string(6),
  uniqueItems: bool(20),
});

const inBody = nested(1, bodyParameter);
const inPath = wrapped(2, nested(4, pathParameter));
const inQuery = wrapped(2, nested(3, queryParameter));

const parameter2: Field = (value, output) => {
  if (!isRecord(value)) return;
  const place = value['in'];
  const field = place === 'body' ? inBody : place === 'path' ? inPath : inQuery;
  field(value, output);
};

const parameters2 = (number: number): Field => repeated(wrapped(number, wrapped(1, parameter2)));

const response2 = message({
  description: string(1),
  schema: wrapped(2, nested(1, anySchema2)),
});

const operation2 = message(
  {
    tags: repeated(string(1)),
    description: string(3),
    operationId: string(5),
    produces: repeated(string(6)),
    consumes: repeated(string(7)),
    parameters: parameters2(8),
    responses: wrapped(9, named(1, wrapped(2, nested(1, response2)))),
    schemes: repeated(string(10)),
  },
  13,
);

const path2 = message(
  {
    get: nested(2, operation2),
    put: nested(3, operation2),
    post: nested(4, operation2),
    delete: nested(5, operation2),
    patch: nested(8, operation2),
    parameters: parameters2(9),
  },
  10,
);

const apiKey2 = message({
  type: string(1),
  name: string(2),
  in: string(3),
  description: string(4),
});

const swagger = message({
  swagger: string(1),
  info: nested(2, message({ title: string(1), version: string(2) })),
  paths: wrapped(8, named(2, nested(2, path2))),
  definitions: wrapped(9, named(1, nested(2, anySchema2))),
  security: repeated(wrapped(12, named(1, wrapped(2, repeated(string(1)))))),
  securityDefinitions: wrapped(13, named(1, wrapped(2, nested(2, apiKey2)))),
});

const default3: Field = (value, output) => {
  double(1)(value, output);
  bool(2)(value, output);
  string(3)(value, output);
};

const schema3: Message = message(
  {
    nullable: bool(1),
    title: string(9),
    multipleOf: double(10),
    maximum: double(11),
    exclusiveMaximum: bool(12),
    minimum: double(13),
    exclusiveMinimum: bool(14),
    maxLength: integer(15),
    minLength: integer(16),
    pattern: string(17),
    maxItems: integer(18),
    minItems: integer(19),
    uniqueItems: bool(20),
    maxProperties: integer(21),
    minProperties: integer(22),
    required: repeated(string(23)),
    enum: repeated(any(24)),
    type: string(25),
    allOf: repeated(schemaOrReference(26)),
    oneOf: repeated(schemaOrReference(27)),
    anyOf: repeated(schemaOrReference(28)),
    not: nested(29, anySchema3),
    items: wrapped(30, schemaOrReference(1)),
    properties: wrapped(31, named(1, schemaOrReference(2))),
    additionalProperties: additional(32, schemaOrReference(1)),
    default: wrapped(33, default3),
    description: string(34),
    format: string(35),
  },
  36,
);

const content3 = (number: number): Field =>
  wrapped(number, named(1, nested(2, message({ schema: schemaOrReference(1) }))));

const parameter3 = message({
  name: string(1),
  in: string(2),
  description: string(3),
  required: bool(4),
  schema: schemaOrReference(10),
});

const parameters3 = (number: number): Field => repeated(wrapped(number, nested(1, parameter3)));

const body3 = message({ description: string(1), content: content3(2), required: bool(3) });

const response3 = message({ description: string(1), content: content3(3) });

const operation3 = message(
  {
    tags: repeated(string(1)),
    description: string(3),
    operationId: string(5),
    parameters: parameters3(6),
    requestBody: wrapped(7, nested(1, body3)),
    responses: wrapped(8, named(2, wrapped(2, nested(1, response3)))),
  },
  13,
);

const path3 = message(
  {
    get: nested(4, operation3),
    put: nested(5, operation3),
    post: nested(6, operation3),
    delete: nested(7, operation3),
    patch: nested(10, operation3),
    parameters: parameters3(13),
  },
  14,
);

const scheme3 = message({
  type: string(1),
  description: string(2),
  name: string(3),
  in: string(4),
});

const components3 = message({
  schemas: wrapped(1, named(1, schemaOrReference(2))),
  securitySchemes: wrapped(7, named(1, wrapped(2, nested(1, scheme3)))),
});

const openApi = message({
  openapi: string(1),
  info: nested(2, message({ title: string(1), version: string(6) })),
  paths: wrapped(4, named(1, nested(2, path3))),
  components: nested(5, components3),
});
