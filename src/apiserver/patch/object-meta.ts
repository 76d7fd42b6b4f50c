import type { JsonSchema } from '../schema/json-schema.ts';
import { declaredField } from '../schema/json-schema.ts';
import { FieldSet } from './field-set.ts';
import type { FieldPath } from './field-set.ts';

const TEXT: JsonSchema = { type: 'string' };
const TEXTS: JsonSchema = { type: 'object', additionalProperties: TEXT };

/** How the metadata of every object is merged, whatever its kind's own schema says about it. */
const OBJECT_META: JsonSchema = {
  type: 'object',
  properties: {
    name: TEXT,
    namespace: TEXT,
    generateName: TEXT,
    uid: TEXT,
    resourceVersion: TEXT,
    generation: { type: 'integer' },
    creationTimestamp: TEXT,
    deletionTimestamp: TEXT,
    deletionGracePeriodSeconds: { type: 'integer' },
    selfLink: TEXT,
    labels: TEXTS,
    annotations: TEXTS,
    finalizers: { type: 'array', items: TEXT, 'x-kubernetes-list-type': 'set' },
    ownerReferences: {
      type: 'array',
      items: { type: 'object', 'x-kubernetes-map-type': 'atomic' },
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['uid'],
    },
    managedFields: { type: 'array', items: { type: 'object' }, 'x-kubernetes-list-type': 'atomic' },
  },
};

const complete = new WeakMap<JsonSchema, JsonSchema>();

/** `schema` of a kind with what it need not declare: `apiVersion`, `kind` and all of `metadata`. */
export function withObjectMeta(schema: JsonSchema): JsonSchema {
  let result = complete.get(schema);
  if (!result) {
    const metadata = declaredField(schema, 'metadata');
    const declared = metadata && declaredField(metadata, 'managedFields');
    result = {
      ...schema,
      ...(declaresNothing(schema) ? { 'x-kubernetes-preserve-unknown-fields': true } : {}),
      properties: {
        ...schema.properties,
        apiVersion: TEXT,
        kind: TEXT,
        metadata: declared ? metadata : OBJECT_META,
      },
    };
    complete.set(schema, result);
  }
  return result;
}

/** A schema without fields leaves them open, and must stay so when it gets some. */
function declaresNothing(schema: JsonSchema): boolean {
  return schema.additionalProperties === undefined && schema.properties === undefined;
}

/** Fields that identify an object or belong to the server: nobody manages them. */
export const UNMANAGED: FieldSet = FieldSet.ofPaths([
  ['f:apiVersion'],
  ['f:kind'],
  ['f:metadata'],
  ...[
    'name',
    'namespace',
    'creationTimestamp',
    'selfLink',
    'uid',
    'clusterName',
    'generation',
    'managedFields',
    'resourceVersion',
  ].map((name): FieldPath => ['f:metadata', `f:${name}`]),
]);
