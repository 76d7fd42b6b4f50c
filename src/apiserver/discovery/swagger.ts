import { isRecord } from '../../util/values.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { nextTurn } from '../../util/next-turn.ts';
import type { ResourceDefinition } from '../objects/resource-definition.ts';
import { VERSION } from '../objects/kubernetes-version.ts';
import { componentsOf } from './components.ts';
import type { Descriptions } from './descriptions.ts';
import { pathsOf } from './paths.ts';

const METHODS = ['get', 'put', 'post', 'delete', 'patch'] as const;
const BODY_TYPES = ['application/json', 'application/yaml'];
const PROTOBUF = 'application/vnd.kubernetes.protobuf';

/**
 * Returns the OpenAPI v2 document of all kinds, which clients read in one piece. It says the same as the
 * documents of version 3, as far as version 2 can: see `schemaOf`.
 */
export function swaggerOf(
  definitions: readonly ResourceDefinition[],
  descriptions: Descriptions,
): JsonObject {
  return {
    ...HEAD,
    paths: Object.fromEntries(pathEntries(definitions)),
    definitions: Object.fromEntries(schemaEntries(definitions, descriptions)),
    ...SECURITY,
  };
}

/** Returns the document of `swaggerOf` as JSON, in steps between which other requests proceed. */
export async function swaggerJson(
  definitions: readonly ResourceDefinition[],
  descriptions: Descriptions,
): Promise<string> {
  const sections = [JSON.stringify(HEAD).slice(0, -1)];
  for (const [name, entries] of [
    ['paths', pathEntries(definitions)],
    ['definitions', schemaEntries(definitions, descriptions)],
  ] as const) {
    const members = new Map<string, string>();
    for (const [key, value] of entries) {
      members.set(key, `${JSON.stringify(key)}:${JSON.stringify(value)}`);
      if (members.size % STEP === 0) await nextTurn();
    }
    sections.push(`"${name}":{${[...members.values()].join(',')}}`);
  }
  return [...sections, JSON.stringify(SECURITY).slice(1)].join(',');
}

/** Number of paths or schemas of a step. */
const STEP = 50;

const HEAD = {
  swagger: '2.0',
  info: { title: 'Kubernetes', version: `${VERSION.major}.${VERSION.minor}` },
} as const;

const SECURITY = {
  securityDefinitions: {
    BearerToken: {
      description: 'Bearer Token authentication',
      type: 'apiKey',
      name: 'authorization',
      in: 'header',
    },
  },
  security: [{ BearerToken: [] }],
} as const;

function* pathEntries(
  definitions: readonly ResourceDefinition[],
): Generator<readonly [string, JsonObject]> {
  for (const definition of definitions) {
    for (const [path, item] of Object.entries(pathsOf(definition))) {
      yield [path, pathOf(item, definition.custom)];
    }
  }
}

function* schemaEntries(
  definitions: readonly ResourceDefinition[],
  descriptions: Descriptions,
): Generator<readonly [string, JsonObject]> {
  for (const [name, schema] of componentsOf(definitions, descriptions)) {
    yield [name, schemaOf(schema as JsonObject)];
  }
}

function pathOf(item: object, custom: boolean | undefined): JsonObject {
  const fields: JsonObject = {};
  for (const [name, value] of Object.entries(item)) {
    if (name === 'parameters') fields[name] = parametersOf(value);
    else if (METHODS.some((method) => method === name)) fields[name] = operationOf(value, custom);
  }
  return fields;
}

function operationOf(operation: JsonObject, custom: boolean | undefined): JsonObject {
  const { requestBody, parameters, responses, ...rest } = operation;
  const types = custom ? BODY_TYPES : [...BODY_TYPES, PROTOBUF];
  const content = isRecord(requestBody) ? requestBody['content'] : undefined;
  const sent = isRecord(content) ? Object.keys(content) : [];
  const isAny = sent.length === 0 || sent.includes('*/*');
  const body = isRecord(requestBody) && {
    name: 'body',
    in: 'body',
    ...(requestBody['required'] === true && { required: true }),
    schema: bodySchema(requestBody),
  };
  return {
    consumes: isAny ? types : sent,
    produces: types,
    schemes: ['https'],
    ...rest,
    ...((body || parameters !== undefined) && {
      parameters: [...(body ? [body] : []), ...parametersOf(parameters)],
    }),
    responses: Object.fromEntries(
      Object.entries(isRecord(responses) ? responses : {}).map(([code, response]) => [
        code,
        responseOf(response),
      ]),
    ),
  };
}

function responseOf(response: unknown): JsonObject {
  if (!isRecord(response)) return {};
  const { description } = response;
  return 'content' in response ? { description, schema: bodySchema(response) } : { description };
}

/** The schema of the first media type: it is the same for all. */
function bodySchema({ content }: JsonObject): JsonObject {
  const [media] = isRecord(content) ? Object.values(content) : [];
  const schema = isRecord(media) ? media['schema'] : undefined;
  return isRecord(schema) ? schemaOf(schema) : {};
}

function parametersOf(parameters: unknown): JsonObject[] {
  if (!Array.isArray(parameters)) return [];
  return (parameters as readonly unknown[])
    .filter(isRecord)
    .map(({ schema, ...parameter }) => Object.assign(parameter, schema));
}

/** Combinations, which version 2 lacks or its clients do not read, and defaults, as upstream. */
const OMITTED: ReadonlySet<string> = new Set([
  'allOf',
  'oneOf',
  'anyOf',
  'not',
  'default',
  'nullable',
]);

/**
 * Converts a schema. A nullable field and a field with unknown fields have no type and no fields of their
 * own, because kubectl rejects values that do not match them.
 */
function schemaOf(schema: JsonObject): JsonObject {
  const converted: JsonObject = {};
  const isOpen = schema['x-kubernetes-preserve-unknown-fields'] === true;
  const kinds = schema['x-kubernetes-group-version-kind'];
  if (isOpen && kinds !== undefined) {
    return { type: 'object', 'x-kubernetes-group-version-kind': kinds };
  }
  const isUntyped = schema['nullable'] === true || (isOpen && schema['type'] === 'object');
  const hasFields = schema['nullable'] !== true && !isOpen;
  for (const [name, value] of Object.entries(schema)) {
    if (OMITTED.has(name) || (name === 'type' && isUntyped)) continue;
    if (name === '$ref') converted[name] = definitionRef(value);
    else if (name === 'properties') {
      if (hasFields && isRecord(value)) converted[name] = propertiesOf(value);
    } else if (name === 'items') {
      if (hasFields && isRecord(value)) converted[name] = schemaOf(value);
    } else if (name === 'additionalProperties') {
      converted[name] = isRecord(value) ? schemaOf(value) : value;
    } else converted[name] = value;
  }
  if (converted['type'] === 'array' && !('items' in converted)) delete converted['type'];
  // A reference with a description or default of its own.
  const { allOf } = schema;
  const [only, ...others] = Array.isArray(allOf) ? (allOf as readonly unknown[]) : [];
  if (isRecord(only) && '$ref' in only && others.length === 0) {
    converted['$ref'] = definitionRef(only['$ref']);
  }
  return converted;
}

function propertiesOf(properties: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(properties).map(([name, property]) => [
      name,
      isRecord(property) ? schemaOf(property) : property,
    ]),
  );
}

function definitionRef(reference: unknown): string {
  return String(reference).replace('#/components/schemas/', '#/definitions/');
}
