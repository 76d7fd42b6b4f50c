import type { ResourceDefinition } from '../resource-definition.ts';
import type { JsonSchema } from '../schema/json-schema.ts';
import type { PublishedSchema } from './published-schema.ts';

const META = '#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.';

const TYPE_META: Readonly<Record<string, JsonSchema>> = {
  apiVersion: { type: 'string', description: 'Group and version of the kind.' },
  kind: { type: 'string', description: 'What kind of object this is.' },
};

const OBJECT_META: JsonSchema = {
  allOf: [{ $ref: `${META}ObjectMeta` }],
  default: {},
  description: 'Name, labels and whatever else every object has.',
};

const LIST_META: JsonSchema = {
  allOf: [{ $ref: `${META}ListMeta` }],
  default: {},
  description: 'Version of the list, and where its next page begins.',
};

/** The schema of a custom kind: what its CRD says, and what every object has. */
export function customSchema(definition: ResourceDefinition): PublishedSchema {
  const { group, version, kind, schema } = definition;
  const own: JsonSchema = schema ? withEmbedded(schema) : {};
  return {
    ...own,
    type: 'object',
    // Without a schema nothing is declared: with fields, clients would take others for wrong.
    ...(schema && {
      properties: { ...own.properties, ...TYPE_META, metadata: OBJECT_META },
    }),
    'x-kubernetes-group-version-kind': [{ group, kind, version }],
  };
}

/** The schema of a list of a custom kind, whose items have the schema of that name. */
export function customListSchema(
  { group, version, kind, listKind }: ResourceDefinition,
  itemSchema: string,
): PublishedSchema {
  return {
    type: 'object',
    description: `A list of ${kind} objects.`,
    required: ['items'],
    properties: {
      ...TYPE_META,
      items: {
        type: 'array',
        description: 'The objects.',
        items: { $ref: `#/components/schemas/${itemSchema}` },
      },
      metadata: LIST_META,
    },
    'x-kubernetes-group-version-kind': [{ group, kind: listKind, version }],
  };
}

/** The schema, in which objects of other kinds have the fields that every object has. */
function withEmbedded(schema: JsonSchema): JsonSchema {
  const { properties, items, additionalProperties } = schema;
  const isEmbedded = schema['x-kubernetes-embedded-resource'] === true;
  const fields =
    properties &&
    Object.fromEntries(
      Object.entries(properties).map(([name, field]) => [name, withEmbedded(field)]),
    );
  return {
    ...schema,
    ...(items && { items: withEmbedded(items) }),
    ...(typeof additionalProperties === 'object' && {
      additionalProperties: withEmbedded(additionalProperties),
    }),
    ...(fields && { properties: fields }),
    ...(isEmbedded && {
      properties: { ...fields, ...TYPE_META, metadata: OBJECT_META },
      required: [...new Set([...(schema.required ?? []), 'kind', 'apiVersion'])],
    }),
  };
}
