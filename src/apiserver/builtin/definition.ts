import type { ResourceDefinition } from '../resource-definition.ts';
import type { JsonSchema } from '../schema/json-schema.ts';
import { linkedSchema } from './schemas.ts';
import { withZeroValues } from './zero-values.ts';

/** What is written down of a built-in kind; the rest follows from it. */
export type BuiltinKind = Pick<ResourceDefinition, 'kind' | 'plural' | 'columns'> &
  Partial<Omit<ResourceDefinition, 'group' | 'version' | 'schema' | 'custom'>> & {
    /** @default '' */
    readonly group?:
      | 'apps'
      | 'authentication.k8s.io'
      | 'authorization.k8s.io'
      | 'coordination.k8s.io'
      | 'policy'
      | 'rbac.authorization.k8s.io'
      | 'scheduling.k8s.io'
      | 'apiextensions.k8s.io';
  };

/** The definition of a built-in kind, served as version v1. Its schema is linked when first used. */
export function builtin(kind: BuiltinKind): ResourceDefinition {
  const { group = '' } = kind;
  let schema: JsonSchema | undefined;
  return {
    group,
    version: 'v1',
    namespaced: true,
    singular: kind.kind.toLowerCase(),
    listKind: `${kind.kind}List`,
    shortNames: [],
    categories: [],
    subresources: {},
    selectableFields: {},
    ...kind,
    get schema(): JsonSchema {
      schema ??= storedSchema(linkedSchema(schemaName(group, kind.kind)));
      return schema;
    },
  };
}

function storedSchema(schema: JsonSchema): JsonSchema {
  const { properties } = schema;
  const status = properties?.['status'];
  return status
    ? { ...schema, properties: { ...properties, status: withZeroValues(status) } }
    : schema;
}

/** What OpenAPI documents call the type of a built-in kind in version v1. */
export function schemaName(group: string, kind: string): string {
  return `${SCHEMA_PREFIXES.get(group) ?? `io.k8s.api.${group}.v1.`}${kind}`;
}

const SCHEMA_PREFIXES: ReadonlyMap<string, string> = new Map([
  ['', 'io.k8s.api.core.v1.'],
  ['authentication.k8s.io', 'io.k8s.api.authentication.v1.'],
  ['authorization.k8s.io', 'io.k8s.api.authorization.v1.'],
  ['coordination.k8s.io', 'io.k8s.api.coordination.v1.'],
  ['rbac.authorization.k8s.io', 'io.k8s.api.rbac.v1.'],
  ['scheduling.k8s.io', 'io.k8s.api.scheduling.v1.'],
  ['apiextensions.k8s.io', 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.'],
]);
