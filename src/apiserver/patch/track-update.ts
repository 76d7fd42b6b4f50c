import { goMetadataSchema } from '../protobuf/go-schema.ts';
import { timestamp } from '../../api/conditions.ts';
import type { JsonSchema } from '../../api/json-schema.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { oncePerObject } from '../../util/memo.ts';
import { isRecord } from '../../util/values.ts';
import type { Comparison } from './compare-fields.ts';
import { compareFields } from './compare-fields.ts';
import { fieldElement, FieldSet } from './field-set.ts';
import { reconciled } from './merge-fields.ts';
import { newFields } from './new-fields.ts';
import type { FieldManager } from './managed-fields.ts';
import { Managers, managedFieldsOf, UNMANAGED, withManagers } from './managed-fields.ts';
import { declaredField } from '../../api/json-schema.ts';

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

export interface Update extends WriteContext {
  /** The stored object; absent on create. */
  readonly before?: Readonly<JsonObject> | undefined;
  /**
   * On create: an object of the kind with no field set. Its members do not count as written.
   * @default {}
   */
  readonly blank?: Readonly<JsonObject> | undefined;
  /** The object to store, with defaults. */
  readonly after: Readonly<JsonObject>;
}

/**
 * Tracks the owners of fields after a create, an update or a patch other than apply. Returns `after`
 * with `metadata.managedFields`. The writer owns the fields that it changed or added; previous
 * owners lose the fields that were changed or removed.
 *
 * Valid `managedFields` of the request replace the stored ones. An empty list, or a list with one
 * empty entry, resets them; an object without managers is not tracked until it is applied. Invalid
 * `managedFields`, and all that are sent to a subresource, are ignored.
 */
export async function trackUpdate(update: Update): Promise<JsonObject> {
  const managers = managersOfUpdate(update);
  if (isUntracked(update, managers)) return withManagers(update.after, managers);
  if (isPlainCreate(update, managers)) return withNewFields(update, managers);
  const { before, blank, after } = update;
  const schema = withObjectMeta(update.schema);
  const changes = await compareInVersions(before ?? blank ?? {}, after, schema, update, managers);
  return withFitting(after, trackChanges(managers, changes, schema, update).capped());
}

/** Like `trackUpdate`, for a kind with one version. */
export function trackUpdateOfVersion(update: Omit<Update, 'versions'>): JsonObject {
  const managers = managersOfUpdate(update);
  if (isUntracked(update, managers)) return withManagers(update.after, managers);
  if (isPlainCreate(update, managers)) return withNewFields(update, managers);
  const { before, blank, after } = update;
  const schema = withObjectMeta(update.schema);
  const changes = withoutReset(compareFields(before ?? blank ?? {}, after, schema), update);
  return withFitting(after, trackChanges(managers, () => changes, schema, update).capped());
}

/** An object without managers is not tracked until it is applied. */
function isUntracked({ before }: Update, managers: Managers): boolean {
  return managers.isEmpty && before !== undefined;
}

/** Every field of a new object is new, unless its kind has fields that do not count as written. */
function isPlainCreate({ blank, subresource }: Update, managers: Managers): boolean {
  return managers.isEmpty && !blank && !subresource;
}

function withNewFields(update: Update, managers: Managers): JsonObject {
  const fields = newFields(update.after, withObjectMeta(update.schema), update.resetFields);
  const time = timestamp(update.now);
  return withFitting(update.after, managers.with({ ...managerOf(update, 'Update'), time, fields }));
}

/** Omits managers that cannot be stored, before their fields are encoded. */
function withFitting(object: Readonly<JsonObject>, managers: Managers): JsonObject {
  return withManagers(object, managers.isTooLarge ? Managers.NONE : managers);
}

/** Returns the changes between two objects in a version of their kind. */
export type VersionedChanges = (apiVersion: string) => Comparison;

/** Compares two objects of the version of the request in this version and in those of the managers. */
export async function compareInVersions(
  before: Readonly<JsonObject>,
  after: Readonly<JsonObject>,
  schema: JsonSchema,
  context: WriteContext,
  managers: Iterable<FieldManager>,
): Promise<VersionedChanges> {
  const { schemaOf, convert } = versionsOf(context, schema);
  const changes = new Map<string, Comparison>();
  const own = withoutReset(compareFields(before, after, schema), context);
  changes.set(context.apiVersion, own);
  for (const { apiVersion } of managers) {
    if (changes.has(apiVersion)) continue;
    const left = await convert(before, apiVersion);
    const right = await convert(after, apiVersion, 'failed to convert new object: ');
    const compared = compareFields(left, right, schemaOf(apiVersion) ?? schema);
    changes.set(apiVersion, withoutReset(compared, context));
  }
  return (apiVersion) => changes.get(apiVersion) ?? own;
}

/** Returns the versions of the kind; by default, all are like that of the request. */
export function versionsOf({ versions }: WriteContext, schema: JsonSchema): FieldVersions {
  return versions ?? { schemaOf: () => schema, convert: (object) => Promise.resolve(object) };
}

/** Adapts the fields of managers to the current schemas, and drops those of unknown versions. */
export function reconciledManagers(managers: Managers, { schemaOf }: FieldVersions): Managers {
  return managers.map(({ fields, apiVersion }) => {
    const schema = schemaOf(apiVersion);
    return schema ? reconciled(fields, schema) : FieldSet.EMPTY;
  });
}

/** Returns the fields that a manager still owns after changes by another one. */
export function leftOf({ fields, apiVersion }: FieldManager, changes: VersionedChanges): FieldSet {
  const { removed, modified, added } = changes(apiVersion);
  return fields.difference(modified.union(added)).difference(removed);
}

/** Returns the managers after `changes` by an update. */
export function trackChanges(
  managers: Managers,
  changes: VersionedChanges,
  schema: JsonSchema,
  context: WriteContext,
): Managers {
  const { modified, added } = changes(context.apiVersion);
  const touched = modified.union(added);
  const others = reconciledManagers(managers, versionsOf(context, schema)).map((manager) =>
    leftOf(manager, changes),
  );
  const written = touched.difference(UNMANAGED);
  if (written.isEmpty) return others;
  const self = managerOf(context, 'Update');
  const previous = others.find(self)?.fields ?? FieldSet.EMPTY;
  return others.with({ ...self, time: timestamp(context.now), fields: written.union(previous) });
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

/** Returns `changes` without the fields that the endpoint does not write. */
function withoutReset(changes: Comparison, context: WriteContext): Comparison {
  const reset = resetFieldsOf(context);
  if (reset.isEmpty) return changes;
  return {
    removed: changes.removed.recursiveDifference(reset),
    modified: changes.modified.recursiveDifference(reset),
    added: changes.added.recursiveDifference(reset),
  };
}

function managersOfUpdate(update: Update): Managers {
  const stored = () => Managers.of(update.before) ?? Managers.NONE;
  if (update.subresource) return stored();
  const sent = managedFieldsOf(update.after);
  if (isReset(sent)) return Managers.NONE;
  const managers = Managers.parse(sent);
  return managers === undefined || managers.isEmpty ? stored() : managers;
}

function isReset(managedFields: unknown): boolean {
  if (!Array.isArray(managedFields) || managedFields.length > 1) return false;
  const entry: unknown = managedFields[0];
  return entry === undefined || (isRecord(entry) && Object.keys(entry).length === 0);
}

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
