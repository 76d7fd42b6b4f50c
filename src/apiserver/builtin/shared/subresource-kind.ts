import type { JsonSchema } from '../../../api/json-schema.ts';
import { goSchema } from '../../protobuf/go-schema.ts';
import { messageOfKind } from '../../protobuf/protobuf-body.ts';
import type { ResourceDefinition, TableColumn } from '../../objects/resource-definition.ts';
import { linkedSchema, schemaName } from '../../schema/builtin-schemas.ts';

/** Returns the definition of a kind that only requests to a subresource contain. */
export function subresourceKind(
  group: string,
  version: string,
  kind: string,
  columns: readonly TableColumn[] = [],
): ResourceDefinition {
  const singular = kind.toLowerCase();
  let schema: JsonSchema | undefined;
  return {
    group,
    version,
    kind,
    singular,
    plural: `${singular}s`,
    listKind: `${kind}List`,
    shortNames: [],
    categories: [],
    namespaced: true,
    subresources: {},
    columns,
    get schema(): JsonSchema {
      const published = linkedSchema(schemaName({ group, version }, kind));
      schema ??= goSchema(published, messageOfKind({ group, version, kind }), {});
      return schema;
    },
  };
}
