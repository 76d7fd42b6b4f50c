import type { JsonSchema } from '../schema/json-schema.ts';

/** A schema as it is published: with references, and with the kind that it describes. */
export interface PublishedSchema extends JsonSchema {
  readonly 'x-kubernetes-group-version-kind'?: readonly GroupVersionKind[];
}

export interface GroupVersionKind {
  readonly group: string;
  readonly kind: string;
  readonly version: string;
}
