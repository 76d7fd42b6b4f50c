import type { JsonSchema } from '../../api/json-schema.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { fieldElement, FieldSet } from './field-set.ts';
import { withObjectMeta } from './kind-schema.ts';
import type { FieldManager } from './managed-fields.ts';

/** Properties of a write request that its field manager is tracked by. */
export interface WriteContext {
  /** The field manager; an empty name becomes `unknown`. */
  readonly manager: string;
  /** The API version of the request: `demo.mark8s.io/v1`. */
  readonly apiVersion: string;
  /** `status`, `scale`; absent on the object itself. */
  readonly subresource?: string | undefined;
  /** Schema of the kind. It need not declare `apiVersion`, `kind` and `metadata`. */
  readonly schema: JsonSchema;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /**
   * Paths of fields that this endpoint does not write and whose owners it does not change: `['status']` for a kind
   * with a status subresource, `['metadata.labels', 'spec']` for that subresource.
   * @default none
   */
  readonly resetFields?: readonly string[] | undefined;
  /** @default managed fields of all versions are treated like those of `apiVersion` */
  readonly versions?: FieldVersions | undefined;
  /** Called between steps that take some time if the objects are large. */
  readonly pause?: (() => Promise<void> | undefined) | undefined;
}

/** The versions of a kind, for managed fields that were written in other versions. */
export interface FieldVersions {
  /**
   * Returns the schema of a version; undefined if the managed fields of the version are dropped.
   *
   * @throws {PatchError} if the kind cannot be converted to the version
   */
  readonly schemaOf: (apiVersion: string) => JsonSchema | undefined;
  /**
   * Converts an object to a version that has a schema. Rejects with a `PatchError` if it does not fit the schema.
   *
   * @param trying start of the error message
   */
  readonly convert: (
    object: JsonObject,
    apiVersion: string,
    trying?: string,
  ) => Promise<JsonObject>;
}

/** Returns the versions of the kind; by default, all are like that of the request. */
export function versionsOf({ versions, schema }: WriteContext): FieldVersions {
  if (versions) return versions;
  const declared = withObjectMeta(schema);
  return { schemaOf: () => declared, convert: (object) => Promise.resolve(object) };
}

/** Returns the manager of a request, without fields and time. */
export function managerOf(
  context: WriteContext,
  operation: FieldManager['operation'],
): Omit<FieldManager, 'fields'> {
  const { manager, apiVersion, subresource } = context;
  return {
    name: manager || 'unknown',
    operation,
    apiVersion,
    subresource: subresource || undefined,
  };
}

/** Returns the fields that the endpoint does not write. */
export function resetFieldsOf({ resetFields = [] }: WriteContext): FieldSet {
  return FieldSet.ofPaths(resetFields.map((path) => path.split('.').map(fieldElement)));
}
