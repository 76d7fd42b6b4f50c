import type { JsonSchema } from '../../api/json-schema.ts';
import { declaredField } from '../../api/json-schema.ts';
import { oncePerObject } from '../../util/memo.ts';
import { goMetadataSchema } from '../protobuf/go-schema.ts';

const TEXT: JsonSchema = { type: 'string' };

/** Returns the schema of a kind with `apiVersion`, `kind` and `metadata` declared. */
export const withObjectMeta: (schema: JsonSchema) => JsonSchema = oncePerObject((schema) => {
  const metadata = declaredField(schema, 'metadata');
  const declared = metadata && declaredField(metadata, 'managedFields');
  return {
    ...schema,
    ...(declaresNothing(schema) ? { 'x-kubernetes-preserve-unknown-fields': true } : {}),
    properties: {
      ...schema.properties,
      apiVersion: TEXT,
      kind: TEXT,
      metadata: declared ? metadata : goMetadataSchema(),
    },
  };
});

/** Whether a schema declares no fields. It must keep unknown fields after fields are added to it. */
function declaresNothing(schema: JsonSchema): boolean {
  return schema.additionalProperties === undefined && schema.properties === undefined;
}
