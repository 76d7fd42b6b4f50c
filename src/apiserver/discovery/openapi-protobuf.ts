import { dump } from 'js-yaml';
import { isRecord } from '../../util/values.ts';
import { WIRE_BYTES, FIXED64, VARINT } from '../protobuf/wire-reader.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { concatBytes, utf8Bytes } from '../../util/bytes.ts';

/**
 * OpenAPI documents as protobuf, in the messages of gnostic that Go clients read
 * (github.com/google/gnostic-models, `openapi.v2.Document` and `openapi.v3.Document`). The tables name the
 * fields that the documents of this server have, each at the place of its number.
 */

/** Appends a field with this value; nothing for values that protobuf omits. */
type Field = (number: number, value: unknown, output: Output) => void;

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
  return concatBytes(output);
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

function writeDelimited(number: number, bytes: Uint8Array, output: Output): void {
  output.push(tag(number, WIRE_BYTES), varint(bytes.byteLength), bytes);
}

/** A string, a boolean or an integer that is not negative. */
function scalar(number: number, value: unknown, output: Output): void {
  if (typeof value === 'string' && value !== '') writeDelimited(number, utf8Bytes(value), output);
  if (value === true) output.push(tag(number, VARINT), Uint8Array.of(1));
  if (typeof value === 'number' && value > 0) output.push(tag(number, VARINT), varint(value));
}

function double(number: number, value: unknown, output: Output): void {
  if (typeof value !== 'number' || value === 0) return;
  const bytes = new DataView(new ArrayBuffer(8));
  bytes.setFloat64(0, value, true);
  output.push(tag(number, FIXED64), new Uint8Array(bytes.buffer));
}

/** Any JSON value, as YAML. */
function any(number: number, value: unknown, output: Output): void {
  if (value !== undefined) part(number, output, (inner) => scalar(2, yamlText(value), inner));
}

function yamlText(value: unknown): string {
  if (typeof value !== 'object') return `${JSON.stringify(value)}\n`;
  return dump(value, { noRefs: true, lineWidth: -1, seqNoIndent: true });
}

/** Appends what `write` writes as a field. */
function part(number: number, output: Output, write: (part: Output) => void): void {
  writeDelimited(number, bytesOf(write), output);
}

function nested(type: Message): Field {
  return (number, value, output) => {
    if (isRecord(value)) part(number, output, (inner) => type(value, inner));
  };
}

/** A message with field `own` for the whole value, such as an alternative of a `oneof`. */
function wrapped(own: number, field: Field): Field {
  return (number, value, output) => {
    if (value !== undefined) part(number, output, (inner) => field(own, value, inner));
  };
}

function repeated(field: Field): Field {
  return (number, value, output) => {
    if (!Array.isArray(value)) return;
    for (const item of value as readonly unknown[]) field(number, item, output);
  };
}

/** The members of an object as repeated messages with a name and a value. */
function named(field: Field): Field {
  return (number, value, output) => {
    if (!isRecord(value)) return;
    for (const [name, member] of Object.entries(value)) {
      part(number, output, (entry) => {
        scalar(1, name, entry);
        field(2, member, entry);
      });
    }
  };
}

/**
 * A message with these fields, separated by spaces. `name=6` has number 6; others have the next number, from 1.
 *
 * @param fields the fields that are not scalars
 * @param extensions number of the field with the members that start with `x-`
 */
function message(
  names: string,
  fields: Readonly<Record<string, Field>> = {},
  extensions?: number,
): Message {
  let next = 1;
  const numbers = new Map(
    names.split(/\s+/).map((word): [name: string, number: number] => {
      const [name = '', number = next] = word.split('=');
      next = Number(number) + 1;
      return [name, Number(number)];
    }),
  );
  return (object, output) => {
    for (const [name, value] of Object.entries(object)) {
      const number = numbers.get(name);
      if (number !== undefined) (fields[name] ?? scalar)(number, value, output);
      else if (name.startsWith('x-') && extensions !== undefined) {
        named(any)(extensions, { [name]: value }, output);
      }
    }
  };
}

/** Chooses by whether the value is a reference, which has no other fields in version 3. */
const schemaOrReference: Field = (number, value, output) => {
  const isReference = isRecord(value) && '$ref' in value;
  const choice = isReference ? wrapped(2, nested(reference3)) : wrapped(1, nested(anySchema3));
  choice(number, value, output);
};

const reference3 = message('$ref');

function additional(schema: Field): Field {
  return (number, value, output) => {
    const choice = typeof value === 'boolean' ? wrapped(2, scalar) : wrapped(1, schema);
    choice(number, value, output);
  };
}

// Schemas contain themselves.
function anySchema2(object: JsonObject, output: Output): void {
  schema2(object, output);
}

function anySchema3(object: JsonObject, output: Output): void {
  schema3(object, output);
}

const schema2: Message = message(
  `$ref format title description multipleOf=6 maximum exclusiveMaximum minimum exclusiveMinimum maxLength
   minLength pattern maxItems minItems uniqueItems maxProperties minProperties required enum
   additionalProperties type items properties=25`,
  {
    multipleOf: double,
    maximum: double,
    minimum: double,
    required: repeated(scalar),
    enum: repeated(any),
    additionalProperties: additional(nested(anySchema2)),
    type: wrapped(1, scalar),
    items: wrapped(1, nested(anySchema2)),
    properties: wrapped(1, named(nested(anySchema2))),
  },
  31,
);

const bodyParameter = message('description name in required schema', {
  schema: nested(anySchema2),
});

const pathParameter = message('required in description name type uniqueItems=19');

const queryParameter = message('required in description name type=6 uniqueItems=20');

function parameter2(parameter: JsonObject, output: Output): void {
  switch (parameter['in']) {
    case 'body':
      return nested(bodyParameter)(1, parameter, output);
    case 'path':
      return wrapped(4, nested(pathParameter))(2, parameter, output);
    default:
      return wrapped(3, nested(queryParameter))(2, parameter, output);
  }
}

const parameters2 = repeated(wrapped(1, nested(parameter2)));

const response2 = message('description schema', { schema: wrapped(1, nested(anySchema2)) });

const operation2 = message(
  'tags description=3 operationId=5 produces consumes parameters responses schemes',
  {
    tags: repeated(scalar),
    produces: repeated(scalar),
    consumes: repeated(scalar),
    parameters: parameters2,
    responses: wrapped(1, named(wrapped(1, nested(response2)))),
    schemes: repeated(scalar),
  },
  13,
);

const path2 = message(
  'get=2 put post delete patch=8 parameters',
  { ...operations(operation2), parameters: parameters2 },
  10,
);

/** The fields of a path with these operations. */
function operations(operation: Message): Readonly<Record<string, Field>> {
  const field = nested(operation);
  return { get: field, put: field, post: field, delete: field, patch: field };
}

const swagger = message('swagger info paths=8 definitions security=12 securityDefinitions', {
  info: nested(message('title version')),
  paths: wrapped(2, named(nested(path2))),
  definitions: wrapped(1, named(nested(anySchema2))),
  security: repeated(wrapped(1, named(wrapped(1, repeated(scalar))))),
  securityDefinitions: wrapped(1, named(wrapped(2, nested(message('type name in description'))))),
});

const default3: Field = (number, value, output) => {
  if (typeof value === 'number') wrapped(1, double)(number, value, output);
  else wrapped(typeof value === 'boolean' ? 2 : 3, scalar)(number, value, output);
};

const schema3: Message = message(
  `nullable title=9 multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength
   pattern maxItems minItems uniqueItems maxProperties minProperties required enum type allOf oneOf anyOf not items
   properties additionalProperties default description format`,
  {
    multipleOf: double,
    maximum: double,
    minimum: double,
    required: repeated(scalar),
    enum: repeated(any),
    allOf: repeated(schemaOrReference),
    oneOf: repeated(schemaOrReference),
    anyOf: repeated(schemaOrReference),
    not: nested(anySchema3),
    items: wrapped(1, schemaOrReference),
    properties: wrapped(1, named(schemaOrReference)),
    additionalProperties: additional(schemaOrReference),
    default: default3,
  },
  36,
);

const content3 = wrapped(1, named(nested(message('schema', { schema: schemaOrReference }))));

const parameter3 = message('name in description required schema=10', {
  schema: schemaOrReference,
});

const parameters3 = repeated(wrapped(1, nested(parameter3)));

const body3 = message('description content required', { content: content3 });

const response3 = message('description content=3', { content: content3 });

const operation3 = message(
  'tags description=3 operationId=5 parameters requestBody responses',
  {
    tags: repeated(scalar),
    parameters: parameters3,
    requestBody: wrapped(1, nested(body3)),
    responses: wrapped(2, named(wrapped(1, nested(response3)))),
  },
  13,
);

const path3 = message(
  'get=4 put post delete patch=10 parameters=13',
  { ...operations(operation3), parameters: parameters3 },
  14,
);

const components3 = message('schemas securitySchemes=7', {
  schemas: wrapped(1, named(schemaOrReference)),
  securitySchemes: wrapped(1, named(wrapped(1, nested(message('type description name in'))))),
});

const openApi = message('openapi info paths=4 components', {
  info: nested(message('title version=6')),
  paths: wrapped(1, named(nested(path3))),
  components: nested(components3),
});
