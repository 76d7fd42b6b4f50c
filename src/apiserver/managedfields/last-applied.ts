import { goJson } from '../../util/go-format.ts';
import { isRecord } from '../../util/values.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { NestingError, objectIn, textIn } from '../../util/json-value.ts';
import { utf8Length } from '../../util/bytes.ts';
import type { ApplyPatch, ApplyPatchResult } from './apply.ts';
import { applyPatch } from './apply.ts';
import { compareFields } from './compare-fields.ts';
import { FieldSet } from './field-set.ts';
import { PatchError } from '../patch/json-patch.ts';
import { fieldsOf } from './merge-fields.ts';
import { withObjectMeta } from './kind-schema.ts';
import { requireTyped } from './typed-value.ts';

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/** The field manager of `kubectl apply --server-side`. Users opt out of the rules here by another name. */
const KUBECTL = 'kubectl';

/** Maximum size of all annotations of an object, in bytes. */
const MAX_ANNOTATIONS_BYTES = 256 * 1024;

/**
 * Server-side apply, with the hand-over from client-side apply: the manager `kubectl` takes over fields of
 * other managers that still have the values in the annotation `last-applied-configuration`, and keeps the
 * annotation current, so that a user can return to client-side apply.
 *
 * Rejects like `applyPatch`.
 */
export async function applyWithLastApplied(patch: ApplyPatch): Promise<ApplyPatchResult> {
  const result = await applyPatch(patch);
  if (patch.manager !== KUBECTL) return result;
  if (result.kind === 'applied') return withLastApplied(result.object, patch.applied);
  const inherited = lastAppliedFields(patch);
  const conflicts = result.conflicts.filter(({ path }) => !inherited.has(path));
  if (conflicts.length > 0) return { kind: 'conflicts', conflicts };
  const forced = await applyPatch({ ...patch, force: true });
  return forced.kind === 'applied' ? withLastApplied(forced.object, patch.applied) : forced;
}

/**
 * Returns the fields in the annotation of the live object that still have the same values. Empty if the
 * annotation is absent, is invalid, or has another version.
 */
function lastAppliedFields({ live, apiVersion, schema: declared }: ApplyPatch): FieldSet {
  if (!live) return FieldSet.EMPTY;
  const schema = withObjectMeta(declared);
  try {
    const last: unknown = JSON.parse(annotationOf(live));
    if (!isRecord(last) || last['apiVersion'] !== apiVersion) return FieldSet.EMPTY;
    requireTyped(last, schema);
    const { modified, added, removed } = compareFields(last, live, schema);
    return fieldsOf(last, schema).difference(modified).difference(added).difference(removed);
  } catch (error) {
    if (error instanceof SyntaxError) return FieldSet.EMPTY;
    if (error instanceof PatchError || error instanceof NestingError) return FieldSet.EMPTY;
    throw error;
  }
}

/** Returns the result with the annotation set to `applied`, or without it if annotations become too large. */
function withLastApplied(object: JsonObject, applied: Readonly<JsonObject>): ApplyPatchResult {
  const present = annotationOf(object);
  if (present === '') return { kind: 'applied', object };
  const text = `${goJson(withoutAnnotation(applied))}\n`;
  if (text === present) return { kind: 'applied', object };
  const { [LAST_APPLIED]: _, ...others } = annotationsOf(object);
  const annotations: JsonObject = { ...others, [LAST_APPLIED]: text };
  const isTooLarge =
    Object.entries(annotations).reduce(
      (bytes, [key, value]) => bytes + utf8Length(key) + utf8Length(String(value)),
      0,
    ) > MAX_ANNOTATIONS_BYTES;
  return { kind: 'applied', object: withAnnotations(object, isTooLarge ? others : annotations) };
}

function withoutAnnotation(applied: Readonly<JsonObject>): JsonObject {
  const { [LAST_APPLIED]: present, ...others } = annotationsOf(applied);
  return present === undefined ? applied : withAnnotations(applied, others);
}

/** Returns the object with these annotations; without any, the field is absent. */
function withAnnotations(object: Readonly<JsonObject>, annotations: JsonObject): JsonObject {
  const { annotations: _, ...rest } = objectIn(object, 'metadata') ?? {};
  const isEmpty = Object.keys(annotations).length === 0;
  return { ...object, metadata: isEmpty ? rest : { ...rest, annotations } };
}

function annotationsOf(object: Readonly<JsonObject>): JsonObject {
  return objectIn(objectIn(object, 'metadata'), 'annotations') ?? {};
}

function annotationOf(object: Readonly<JsonObject>): string {
  return textIn(annotationsOf(object), LAST_APPLIED);
}
