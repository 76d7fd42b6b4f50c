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
import { managerOf, tracked, UNMANAGED, withObjectMeta, withoutReset } from './track-update.ts';
import { PatchError } from './json-patch.ts';
import type { WriteContext } from './track-update.ts';
import { requireTyped } from './typed-value.ts';
import type { StatusCause } from '../../api/status.ts';
import { goQuote } from '../../util/go-quote.ts';
import { andMore, listed } from '../schema/go-format.ts';
import type { FieldPath } from './field-set.ts';

export interface ApplyPatch extends WriteContext {
  /** The stored object; absent if the apply creates it. */
  readonly live?: Readonly<JsonObject> | undefined;
  /** What the manager wants: all the fields it has an opinion about, and no others. */
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
 * Server-side apply. The object gets what `applied` says; what the manager applied before and has
 * left out now is removed unless somebody else owns it; a field that another manager owns and that
 * would change is a conflict unless `force` is set. Who applies the value a field has already
 * becomes one of its owners.
 *
 * Returns `live` itself if neither the object nor its owners change. `metadata.uid` and
 * `metadata.resourceVersion` of `applied` are in the result, for the server to check; defaults are
 * the server's to fill in.
 *
 * @throws {PatchError} if `applied` is for another version, has managedFields, or does not fit the
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
  const unchanged = object === live && mine?.fields.equals(owned) === true;
  const time = unchanged ? mine?.time : timestamp(patch.now);
  const result = left.with({ ...self, time, fields: owned });
  if (object === live && result.areThoseOf(live)) return { kind: 'applied', object: live };
  return { kind: 'applied', object: withManagers(object, result) };
}

/** Metadata that only the server writes: what is sent back from an export is ignored. */
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
  return withoutForeignFields(applied, patch.resetFields ?? []);
}

/** What the server checks, also where the rest of the metadata is not written. */
const CHECKED = new Set(['name', 'namespace', 'uid', 'resourceVersion']);

/** `applied` without what only the server writes, or another endpoint. */
function withoutForeignFields(
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
 * The managers of the live object. If there are none, what is there was written before anybody
 * kept record: it is nobody's in particular, but not free for the taking.
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
  return tracked(managers, compareFields({}, live, schema), schema, before);
}

/** `merged` without what the manager had applied last, applies no more, and nobody else owns. */
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
  // First all that was applied last goes; what anybody owns comes back, with what leads to it.
  const bare = fieldsIn(removeFields(merged, abandoned, schema));
  const surplus = present.difference(bare.union(owned));
  // What nobody owns, but the manager had not applied either, comes back too.
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

/** What a 409 (reason `Conflict`) says of conflicts: its message and `details.causes`. */
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
