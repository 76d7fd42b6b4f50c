import type { JsonObject } from '../../util/json-value.ts';
import type { Comparison } from './compare-fields.ts';
import { compareFields } from './compare-fields.ts';
import { FieldSet } from './field-set.ts';
import { withObjectMeta } from './kind-schema.ts';
import type { FieldManager, Managers } from './managed-fields.ts';
import { reconciled } from './merge-fields.ts';
import type { FieldVersions, WriteContext } from './write-context.ts';
import { resetFieldsOf, versionsOf } from './write-context.ts';

/** Returns the changes between two objects in a version of their kind. */
export type VersionedChanges = (apiVersion: string) => Comparison;

/** Compares two objects of the version of the request in this version and in those of the managers. */
export async function compareInVersions(
  before: Readonly<JsonObject>,
  after: Readonly<JsonObject>,
  context: WriteContext,
  managers: Iterable<FieldManager>,
): Promise<VersionedChanges> {
  const schema = withObjectMeta(context.schema);
  const { schemaOf, convert } = versionsOf(context);
  const changes = new Map<string, Comparison>();
  const compared = compareFields(before, after, schema);
  await context.pause?.();
  const own = withoutReset(compared, context);
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

/** Returns `changes` without the fields that the endpoint does not write. */
export function withoutReset(changes: Comparison, context: WriteContext): Comparison {
  const reset = resetFieldsOf(context);
  if (reset.isEmpty) return changes;
  return {
    removed: changes.removed.recursiveDifference(reset),
    modified: changes.modified.recursiveDifference(reset),
    added: changes.added.recursiveDifference(reset),
  };
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
