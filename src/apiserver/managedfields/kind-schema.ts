import type { JsonSchema } from '../../api/json-schema.ts';
import { declaredField } from '../../api/json-schema.ts';
import { oncePerObject } from '../../util/memo.ts';
import { goMetadataSchema } from '../protobuf/go-schema.ts';
import { hasEmbedded } from '../request/embedded-resources.ts';

const TEXT: JsonSchema = { type: 'string' };

/** Returns the schema of a kind with `apiVersion`, `kind` and `metadata` declared. */
export const withObjectMeta: (schema: JsonSchema) => JsonSchema = oncePerObject((schema) => {
  const metadata = declaredField(schema, 'metadata');
  const declared = metadata && declaredField(metadata, 'managedFields');
  return {
    ...schema,
    ...(declaresNothing(schema) && { 'x-kubernetes-preserve-unknown-fields': true }),
    properties: {
      ...withEmbeddedMeta(schema).properties,
      apiVersion: TEXT,
      kind: TEXT,
      metadata: declared ? metadata : goMetadataSchema(),
    },
  };
});

/** Declares `apiVersion`, `kind` and `metadata` of embedded resources. */
function withEmbeddedMeta(schema: JsonSchema): JsonSchema {
  if (!hasEmbedded(schema)) return schema;
  const { properties, items, additionalProperties } = schema;
  const fields = Object.entries(properties ?? {}).map(([name, field]) => [
    name,
    withEmbeddedMeta(field),
  ]);
  const embedded = schema['x-kubernetes-embedded-resource'] === true;
  return {
    ...schema,
    ...(items && { items: withEmbeddedMeta(items) }),
    ...(typeof additionalProperties === 'object' && {
      additionalProperties: withEmbeddedMeta(additionalProperties),
    }),
    ...((properties || embedded) && {
      properties: {
        ...Object.fromEntries(fields),
        ...(embedded && { apiVersion: TEXT, kind: TEXT, metadata: goMetadataSchema() }),
      },
    }),
  };
}

/** Whether a schema declares no fields. It must keep unknown fields after fields are added to it. */
function declaresNothing(schema: JsonSchema): boolean {
  return schema.additionalProperties === undefined && schema.properties === undefined;
}
