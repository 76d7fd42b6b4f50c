import { timestamp } from '../../api/conditions.ts';
import type { JsonSchema } from '../schema/json-schema.ts';
import type { JsonObject } from '../schema/json-value.ts';
import { isRecord } from '../../util/values.ts';
import type { Comparison } from './compare-fields.ts';
import { compareFields } from './compare-fields.ts';
import { fieldElement, FieldSet } from './field-set.ts';
import { reconciled } from './merge-fields.ts';
import type { FieldManager } from './managed-fields.ts';
import { Managers, managedFieldsOf, withManagers } from './managed-fields.ts';
import { declaredField } from '../schema/json-schema.ts';
import type { FieldPath } from './field-set.ts';

/** What tracking and applying need to know of a request. */
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
   * Top-level fields that this endpoint does not write, and whose ownership it does not touch:
   * `['status']` on an object whose kind has a status subresource, `['metadata', 'spec']` on that
   * subresource.
   * @default none
   */
  readonly resetFields?: readonly string[] | undefined;
}

export interface Update extends WriteContext {
  /** The stored object; absent on create. */
  readonly before?: Readonly<JsonObject> | undefined;
  /**
   * On create: an object of the kind in which nothing is set, whose members nobody has written.
   * @default {}
   */
  readonly blank?: Readonly<JsonObject> | undefined;
  /** The object that is to be stored, defaults applied. */
  readonly after: Readonly<JsonObject>;
}

/**
 * Writes down who owns what after a create, an update or a patch that is not an apply: returns
 * `after` with `metadata.managedFields`. The writer owns what it changed and added; who owned what
 * was changed or removed owns it no more.
 *
 * `managedFields` that the request carries count if they are valid: an empty list, or one with an
 * empty entry, resets them, and an object without managers is not tracked until it is applied.
 * Invalid ones are ignored, as are all on a subresource.
 */
export function trackUpdate(update: Update): JsonObject {
  const schema = withObjectMeta(update.schema);
  const { before, blank = {}, after } = update;
  const managers = managersOfUpdate(update);
  if (managers.isEmpty && before !== undefined) return withManagers(after, managers);
  const changes = compareFields(before ?? blank, after, schema);
  return withManagers(after, tracked(managers, changes, schema, update).capped());
}

/** The managers after `changes` by an update. */
export function tracked(
  managers: Managers,
  changes: Comparison,
  schema: JsonSchema,
  context: WriteContext,
): Managers {
  const { removed, modified, added } = withoutReset(changes, context);
  const touched = modified.union(added);
  const others = managers.map((manager) =>
    reconciled(manager.fields, schema).difference(touched).difference(removed),
  );
  const written = touched.difference(UNMANAGED);
  if (written.isEmpty) return others;
  const self = managerOf(context, 'Update');
  const previous = others.find(self)?.fields ?? FieldSet.EMPTY;
  const time = timestamp(context.now);
  return others.with({ ...self, time, fields: written.union(previous) });
}

/** Who writes, without fields and time. */
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

/** `changes` without those to fields that the endpoint does not write. */
export function withoutReset(changes: Comparison, context: WriteContext): Comparison {
  const reset = FieldSet.of((context.resetFields ?? []).map(fieldElement));
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
