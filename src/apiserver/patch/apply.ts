import { timestamp } from '../../api/conditions.ts';
import type { JsonSchema } from '../schema/json-schema.ts';
import type { JsonObject } from '../schema/json-value.ts';
import { Draft, own } from '../schema/json-value.ts';
import { isRecord } from '../../util/values.ts';
import { compareFields } from './compare-fields.ts';
import { displayPath, FieldSet } from './field-set.ts';
import {
  fieldsOf,
  mergeFields,
  reconciled,
  removeFields,
  withDeclaredParents,
} from './merge-fields.ts';
import type { FieldManager } from './managed-fields.ts';
import { Managers, managedFieldsOf, withManagers } from './managed-fields.ts';
import {
  managerOf,
  trackChanges,
  UNMANAGED,
  withObjectMeta,
  withoutReset,
} from './track-update.ts';
import { PatchError } from './json-patch.ts';
import type { WriteContext } from './track-update.ts';
import { requireTyped } from './typed-value.ts';
import type { StatusCause } from '../../api/status.ts';
import { goQuote } from '../../util/go-quote.ts';
import { andMore, listed } from '../../util/go-format.ts';
import type { FieldPath } from './field-set.ts';

export interface ApplyPatch extends WriteContext {
  /** The stored object; absent if the apply creates it. */
  readonly live?: Readonly<JsonObject> | undefined;
  /** The desired fields of the manager, and no others. */
  readonly applied: Readonly<JsonObject>;
  /**
   * Take over fields that other managers own.
   * @default false
   */
  readonly force?: boolean | undefined;
}

export type ApplyResult =
  | { readonly kind: 'applied'; readonly object: JsonObject }
  | { readonly kind: 'conflicts'; readonly conflicts: readonly Conflict[] };

/**
 * Server-side apply. Merges `applied` into `live`:
 * - Fields that the manager applied before and omits now are removed unless another manager owns them.
 * - A change of a field that another manager owns is a conflict unless `force` is set.
 * - A manager that applies the present value of a field becomes one of its owners.
 *
 * Returns `live` itself if neither the object nor its owners change. The result contains
 * `metadata.uid` and `metadata.resourceVersion` of `applied`, for the caller to check. It has no
 * defaults yet.
 *
 * @throws {PatchError} if `applied` has another version, has managedFields, or does not fit the
 *   schema; or if the managedFields of `live` are invalid
 */
export function applyPatch(patch: ApplyPatch): ApplyResult {
  const schema = withObjectMeta(patch.schema);
  const applied = requireApplicable(patch, schema);
  const live: Readonly<JsonObject> = patch.live ?? {};
  const managers = managersOf(patch, schema);

  const self = managerOf(patch, 'Apply');
  const mine = managers.find(self);
  const fields = fieldsOf(applied, schema);
  const wanting = managers.with({ ...self, fields });
  const merged = mergeFields(live, applied, schema);
  const object = mine ? withoutAbandoned(merged, mine.fields, wanting, schema) : merged;

  const changes = withoutReset(compareFields(live, object, schema), patch);
  const touched = changes.modified.union(changes.added);
  const conflicts = conflictsOf(managers, mine, touched);
  if (conflicts.length > 0 && !patch.force) return { kind: 'conflicts', conflicts };

  const left = managers.map((manager) =>
    manager === mine
      ? manager.fields
      : manager.fields.difference(touched).difference(changes.removed),
  );
  const owned = fields.difference(UNMANAGED);
  // As upstream, an apply that changes no field does not change its time, so a new owner has none.
  const time = object === live ? mine?.time : timestamp(patch.now);
  const result = left.with({ ...self, time, fields: owned });
  if (object === live && result.equalEntriesOf(live)) return { kind: 'applied', object: live };
  return { kind: 'applied', object: withManagers(object, result) };
}

/** Metadata that only the server writes; ignored, because clients send exported objects. */
const SERVER_OWNED = new Set(['creationTimestamp', 'generation', 'selfLink', 'managedFields']);

function requireApplicable(patch: ApplyPatch, schema: JsonSchema): JsonObject {
  const { applied, apiVersion } = patch;
  if (applied['apiVersion'] !== apiVersion) {
    throw new PatchError(
      'malformed',
      `Incorrect version specified in apply patch. Specified patch version: ${String(applied['apiVersion'])}, expected: ${apiVersion}`,
    );
  }
  if (managedFieldsOf(applied) !== undefined && managedFieldsOf(applied) !== null) {
    throw new PatchError('malformed', 'metadata.managedFields must be nil');
  }
  requireTyped(applied, schema);
  return withoutIgnoredFields(applied, patch.resetFields ?? []);
}

/** Metadata that the server checks even if the endpoint does not write metadata. */
const CHECKED = new Set(['name', 'namespace', 'uid', 'resourceVersion']);

/** `applied` without the fields that only the server or another endpoint writes. */
function withoutIgnoredFields(
  applied: Readonly<JsonObject>,
  resetFields: readonly string[],
): JsonObject {
  const object = new Draft(applied);
  for (const name of resetFields) if (name !== 'metadata') object.delete(name);
  const metadata = own(applied, 'metadata');
  if (isRecord(metadata)) {
    const kept = new Draft(metadata);
    const all = !resetFields.includes('metadata');
    for (const name of Object.keys(metadata)) {
      if (SERVER_OWNED.has(name) || !(all || CHECKED.has(name))) kept.delete(name);
    }
    object.set('metadata', kept.value);
  }
  return object.value;
}

/**
 * The managers of the live object. If it has none, the manager `before-first-apply` owns all its
 * fields, so that the first apply reports conflicts.
 */
function managersOf(patch: ApplyPatch, schema: JsonSchema): Managers {
  const { live } = patch;
  const managers = Managers.of(live);
  if (!managers) {
    throw new PatchError('untyped', 'failed to decode managed fields of the live object');
  }
  if (!live || !managers.isEmpty) {
    return managers.map((manager) => reconciled(manager.fields, schema));
  }
  const before: WriteContext = { ...patch, manager: 'before-first-apply' };
  return trackChanges(managers, compareFields({}, live, schema), schema, before);
}

/** `merged` without the fields of the last apply that the manager omits and no other manager owns. */
function withoutAbandoned(
  merged: JsonObject,
  last: FieldSet,
  managers: Managers,
  schema: JsonSchema,
): JsonObject {
  const kept = [...managers].reduce((all, { fields }) => all.union(fields), FieldSet.EMPTY);
  const parents = (fields: FieldSet) => withDeclaredParents(fields, schema);
  const abandoned = parents(last);
  const owned = parents(kept);
  if (abandoned.difference(owned).isEmpty) return merged;
  const fieldsIn = (object: JsonObject) => parents(fieldsOf(object, schema));
  const present = fieldsIn(merged);
  // Removes all fields of the last apply, then restores owned fields and their parents.
  const bare = fieldsIn(removeFields(merged, abandoned, schema));
  const surplus = present.difference(bare.union(owned));
  // Restores unowned fields that the last apply did not contain.
  const pruned = fieldsIn(removeFields(merged, surplus, schema));
  return removeFields(merged, present.difference(pruned).intersection(abandoned), schema);
}

function conflictsOf(
  managers: Managers,
  mine: FieldManager | undefined,
  touched: FieldSet,
): Conflict[] {
  const conflicts: Conflict[] = [];
  for (const manager of managers) {
    if (manager === mine) continue;
    const { name, operation, apiVersion, subresource, fields } = manager;
    for (const path of fields.intersection(touched).paths()) {
      conflicts.push({ manager: name, operation, apiVersion, subresource, path });
    }
  }
  return conflicts;
}

/** A field that another manager owns and that an apply would change. */
export interface Conflict {
  readonly manager: string;
  readonly operation: FieldManager['operation'];
  readonly apiVersion: string;
  readonly subresource?: string | undefined;
  readonly path: FieldPath;
}

/** Returns the message and `details.causes` of the 409 (reason `Conflict`) for conflicts. */
export function describeConflicts(conflicts: readonly Conflict[]): {
  readonly message: string;
  readonly causes: StatusCause[];
} {
  const { items, texts, omitted } = listed(conflicts, ({ path }) => displayPath(path));
  const shown = items.map((conflict, index) => ({
    manager: displayManager(conflict),
    field: texts[index] ?? '',
  }));
  const causes = shown.map(({ manager, field }) => ({
    reason: 'FieldManagerConflict',
    message: `conflict with ${manager}`,
    field,
  }));
  const [first] = shown;
  if (first && conflicts.length === 1) {
    const message = `Apply failed with 1 conflict: conflict with ${first.manager}: ${first.field}`;
    return { message, causes };
  }
  const byManager = new Map<string, string[]>();
  for (const { manager, field } of shown) {
    const fields = byManager.get(manager);
    if (fields) fields.push(field);
    else byManager.set(manager, [field]);
  }
  const lines = [...byManager.entries()]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([manager, fields]) => `conflicts with ${manager}:\n- ${fields.join('\n- ')}`);
  const list = [...lines, ...andMore(omitted)].join('\n');
  const message = `Apply failed with ${conflicts.length} conflicts: ${list}`;
  return { message, causes };
}

/** `"kubectl" using apps/v1` for an update, `"helm"` for an apply. */
function displayManager(conflict: Conflict): string {
  const { manager, operation, apiVersion, subresource } = conflict;
  const part = subresource ? ` with subresource ${goQuote(subresource)}` : '';
  return `${goQuote(manager)}${part}${operation === 'Update' ? ` using ${apiVersion}` : ''}`;
}
