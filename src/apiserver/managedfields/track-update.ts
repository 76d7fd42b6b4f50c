import { timestamp } from '../../api/conditions.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { isRecord } from '../../util/values.ts';
import { compareFields } from './compare-fields.ts';
import { FieldSet } from './field-set.ts';
import { withObjectMeta } from './kind-schema.ts';
import { Managers, managedFieldsOf, UNMANAGED, withManagers } from './managed-fields.ts';
import { newFields } from './new-fields.ts';
import type { VersionedChanges } from './versioned-changes.ts';
import {
  compareInVersions,
  leftOf,
  reconciledManagers,
  withoutReset,
} from './versioned-changes.ts';
import type { WriteContext } from './write-context.ts';
import { managerOf, versionsOf } from './write-context.ts';

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
  const { after, pause } = update;
  const managers = managersOfUpdate(update);
  let tracked = withoutComparison(update, managers);
  if (!tracked) {
    const changes = await compareInVersions(baseOf(update), after, update, managers);
    await pause?.();
    tracked = trackChanges(managers, changes, update).capped();
  }
  await pause?.();
  return withFitting(after, tracked);
}

/** Like `trackUpdate` in one step, for a kind with one version. */
export function trackUpdateOfVersion(update: Omit<Update, 'versions'>): JsonObject {
  const managers = managersOfUpdate(update);
  const tracked = withoutComparison(update, managers);
  if (tracked) return withFitting(update.after, tracked);
  const compared = compareFields(baseOf(update), update.after, withObjectMeta(update.schema));
  const changes = withoutReset(compared, update);
  return withFitting(update.after, trackChanges(managers, () => changes, update).capped());
}

/** Returns the managers after an update whose fields need not be compared; otherwise undefined. */
function withoutComparison(update: Update, managers: Managers): Managers | undefined {
  const { before, blank, after, subresource } = update;
  if (!managers.isEmpty) return undefined;
  // An object without managers is not tracked until it is applied.
  if (before !== undefined) return managers;
  // Every field of a new object is new, unless its kind has fields that do not count as written.
  if (blank || subresource) return undefined;
  const fields = newFields(after, withObjectMeta(update.schema), update.resetFields);
  const time = timestamp(update.now);
  return managers.with({ ...managerOf(update, 'Update'), time, fields });
}

function baseOf({ before, blank = {} }: Update): Readonly<JsonObject> {
  return before ?? blank;
}

/** Omits managers that cannot be stored, before their fields are encoded. */
function withFitting(object: Readonly<JsonObject>, managers: Managers): JsonObject {
  return withManagers(object, managers.isTooLarge ? Managers.NONE : managers);
}

/** Returns the managers after `changes` by an update. */
export function trackChanges(
  managers: Managers,
  changes: VersionedChanges,
  context: WriteContext,
): Managers {
  const { modified, added } = changes(context.apiVersion);
  const touched = modified.union(added);
  const others = reconciledManagers(managers, versionsOf(context)).map((manager) =>
    leftOf(manager, changes),
  );
  const written = touched.difference(UNMANAGED);
  if (written.isEmpty) return others;
  const self = managerOf(context, 'Update');
  const previous = others.find(self)?.fields ?? FieldSet.EMPTY;
  return others.with({ ...self, time: timestamp(context.now), fields: written.union(previous) });
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
