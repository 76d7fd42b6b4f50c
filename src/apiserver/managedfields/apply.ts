import { equalJson } from '../../api/equal.ts';
import { timestamp } from '../../api/conditions.ts';
import type { JsonSchema } from '../../api/json-schema.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { displayPath, FieldSet } from './field-set.ts';
import { fieldsOf, mergeFields, removeFields, withDeclaredParents } from './merge-fields.ts';
import type { FieldManager } from './managed-fields.ts';
import { Managers, managedFieldsOf, withManagers, UNMANAGED } from './managed-fields.ts';
import { withObjectMeta } from './kind-schema.ts';
import { trackChanges } from './track-update.ts';
import type { VersionedChanges } from './versioned-changes.ts';
import { compareInVersions, leftOf, reconciledManagers } from './versioned-changes.ts';
import type { WriteContext } from './write-context.ts';
import { managerOf, resetFieldsOf, versionsOf } from './write-context.ts';
import { PatchError } from '../patch/json-patch.ts';
import { describe, requireTyped } from './typed-value.ts';
import type { StatusCause } from '../../api/status.ts';
import { goQuote } from '../../util/go-quote.ts';
import { andMore, listed } from '../../util/go-format.ts';
import type { FieldSetPath } from './field-set.ts';

export interface ApplyPatch extends WriteContext {
  /** The stored object; absent if the apply creates it. */
  readonly live?: Readonly<JsonObject> | undefined;
  /** Same as `Update.blank`. */
  readonly blank?: Readonly<JsonObject> | undefined;
  /** The desired fields of the manager, and no others. */
  readonly applied: Readonly<JsonObject>;
  /**
   * Take over fields that other managers own.
   * @default false
   */
  readonly force?: boolean | undefined;
}

export type ApplyPatchResult =
  | { readonly kind: 'applied'; readonly object: JsonObject }
  | { readonly kind: 'conflicts'; readonly conflicts: readonly Conflict[] };

/**
 * Server-side apply. Merges `applied` into `live`:
 * - Fields that the manager applied before and omits now are removed unless another manager owns them.
 * - A change of a field that another manager owns is a conflict unless `force` is set.
 * - A manager that applies the present value of a field becomes one of its owners.
 *
 * Returns `live` itself if neither the object nor its owners change. The result contains all of `applied`, also
 * fields that only the server or another endpoint writes, for the caller to check and reset. It has no defaults yet.
 *
 * Rejects with a `PatchError` if `applied` has another version, has managedFields, or does not fit the schema; or if the
 * managedFields of `live` are invalid.
 */
export async function applyPatch(patch: ApplyPatch): Promise<ApplyPatchResult> {
  const schema = withObjectMeta(patch.schema);
  const { applied, pause } = patch;
  const stored = Managers.of(patch.live);
  // As upstream, which gives the fields of such an object a manager before it reads what is applied.
  if (stored?.isEmpty) {
    requireLiveTyped(patch, schema, (live) => {
      const what = `failed to convert new object (${live}) to smd typed`;
      return `failed to create manager for existing fields: ${what}: `;
    });
  }
  await pause?.();
  requireApplicable(patch, schema);
  await pause?.();
  if (!stored?.isEmpty) {
    requireLiveTyped(patch, schema, (live) => `failed to create typed live object (${live}): `);
  }
  await pause?.();
  const live: Readonly<JsonObject> = patch.live ?? {};
  const managers = await managersOf(patch, stored);

  const self = managerOf(patch, 'Apply');
  const mine = managers.find(self);
  await pause?.();
  const fields = fieldsOf(applied, schema).recursiveDifference(resetFieldsOf(patch));
  await pause?.();
  const wanting = managers.with({ ...self, fields });
  await pause?.();
  const merged = mergeFields(live, applied, schema);
  const object = mine ? await withoutAbandoned(merged, mine, wanting, patch) : merged;

  await pause?.();
  const others = [...managers].filter((manager) => manager !== mine);
  const changes = await compareInVersions(live, object, patch, others);
  await pause?.();
  const conflicts = conflictsOf(managers, mine, changes);
  if (conflicts.length > 0 && !patch.force) return { kind: 'conflicts', conflicts };

  await pause?.();
  const left = managers.map((manager) =>
    manager === mine ? manager.fields : leftOf(manager, changes),
  );
  await pause?.();
  const owned = fields.difference(UNMANAGED);
  // As upstream, an apply that changes no field does not change its time, so a new owner has none.
  const time = object === live ? mine?.time : timestamp(patch.now);
  const result = left.with({ ...self, time, fields: owned });
  if (object === live && result.equalEntriesOf(live)) return { kind: 'applied', object: live };
  return { kind: 'applied', object: withManagers(object, result) };
}

/**
 * Checks that the live object, if there is one, fits the schema.
 *
 * @param trying returns the start of the message for the name of the object
 * @throws {PatchError} `untyped`
 */
function requireLiveTyped(
  { live }: ApplyPatch,
  schema: JsonSchema,
  trying: (live: string) => string,
): void {
  if (live) requireTyped(live, schema, trying(describe(live)), true);
}

function requireApplicable(patch: ApplyPatch, schema: JsonSchema): void {
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
}

/**
 * The managers of the live object. If it has none, the manager `before-first-apply` owns all its
 * fields, so that the first apply reports conflicts.
 *
 * @param managers those that the live object has; undefined if they cannot be decoded
 */
async function managersOf(patch: ApplyPatch, managers: Managers | undefined): Promise<Managers> {
  const { live } = patch;
  if (!managers) {
    throw new PatchError('untyped', 'failed to decode managed fields of the live object');
  }
  if (!live || !managers.isEmpty) {
    return reconciledManagers(managers, versionsOf(patch));
  }
  const before: WriteContext = { ...patch, manager: 'before-first-apply' };
  const changes = await compareInVersions(patch.blank ?? {}, live, before, managers);
  await patch.pause?.();
  return trackChanges(managers, changes, before);
}

/**
 * `merged` without the fields of the last apply that the manager omits and no other manager owns. Fields are
 * removed in the version of the last apply, and restored in the versions of their owners.
 */
async function withoutAbandoned(
  merged: JsonObject,
  last: FieldManager,
  managers: Managers,
  patch: ApplyPatch,
): Promise<JsonObject> {
  const versions = versionsOf(patch);
  const inVersion = (apiVersion: string) => {
    const schema = versions.schemaOf(apiVersion) ?? {};
    const parents = (fields: FieldSet) => withDeclaredParents(fields, schema);
    return {
      parents,
      convert: (object: JsonObject) => versions.convert(object, apiVersion, PRUNING),
      fieldsIn: (object: JsonObject) => parents(fieldsOf(object, schema)),
      without: (object: JsonObject, fields: FieldSet) => removeFields(object, fields, schema),
    };
  };
  const owned = new Map([[last.apiVersion, FieldSet.EMPTY]]);
  for (const { apiVersion, fields } of managers) {
    owned.set(apiVersion, (owned.get(apiVersion) ?? FieldSet.EMPTY).union(fields));
  }
  const { parents, convert, fieldsIn, without } = inVersion(last.apiVersion);
  const { pause } = patch;
  await pause?.();
  const abandoned = parents(last.fields);
  await pause?.();
  const ofVersion = parents(owned.get(last.apiVersion) ?? FieldSet.EMPTY);
  if (abandoned.difference(ofVersion).isEmpty) return merged;
  // Removes all fields of the last apply, then restores owned fields and their parents.
  const before = await convert(merged);
  await pause?.();
  let pruned = without(before, abandoned);
  for (const [apiVersion, fields] of owned) {
    const version = inVersion(apiVersion);
    const present = await version.convert(before);
    await pause?.();
    const left = version.fieldsIn(await version.convert(pruned));
    await pause?.();
    const kept = left.union(version.parents(fields));
    await pause?.();
    pruned = version.without(present, version.fieldsIn(present).difference(kept));
  }
  // Restores unowned fields that the last apply did not contain.
  await pause?.();
  const remaining = fieldsIn(await convert(pruned));
  await pause?.();
  const removed = fieldsIn(before).difference(remaining);
  await pause?.();
  const result = without(before, removed.intersection(abandoned));
  const object = await versions.convert(result, patch.apiVersion);
  return equalJson(object, merged) ? merged : object;
}

/** Start of the message of an error. */
const PRUNING = 'failed to prune fields: failed to convert merged object to last applied version: ';

function conflictsOf(
  managers: Managers,
  mine: FieldManager | undefined,
  changes: VersionedChanges,
): Conflict[] {
  const conflicts: Conflict[] = [];
  for (const manager of managers) {
    if (manager === mine) continue;
    const { name, operation, apiVersion, subresource, fields } = manager;
    const { modified, added } = changes(apiVersion);
    const touched = modified.union(added);
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
  readonly path: FieldSetPath;
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
