import { parseGroupVersion } from '../../api/resource.ts';
import { requireParsable } from '../strategy/before-update.ts';
import { defaultsInSteps } from '../strategy/defaults.ts';
import type { Answer, Call } from './call.ts';
import type { UpdatedObject } from './guaranteed-update.ts';
import { updateObject } from './guaranteed-update.ts';
import {
  blankObject,
  fieldVersions,
  withTrackedFields,
  writeContext,
} from '../managedfields/field-manager.ts';
import { goTypeOf } from '../json/go-json.ts';
import { apiVersionIn } from '../request/negotiation.ts';
import { pause, runSteps } from '../request/pause.ts';
import {
  decodeObject,
  duplicatesOf,
  goKindOf,
  invalidPatch,
  isOfAnotherType,
  unprocessablePatch,
  reportStrictErrors,
  requireGoTypes,
} from '../request/object-decoder.ts';
import type { ApplyPatchResult } from '../managedfields/apply.ts';
import { describeConflicts } from '../managedfields/apply.ts';
import { jsonPatchInSteps, mergePatch, PatchError } from '../patch/json-patch.ts';
import { describe } from '../managedfields/typed-value.ts';
import { applyWithLastApplied } from '../managedfields/last-applied.ts';
import { strategicMergePatch } from '../patch/strategic-merge-patch.ts';
import { isTrue } from '../request/request-info.ts';
import {
  APPLY_PATCH,
  contentType,
  isApplyPatch,
  parseBody,
  readApplyPatch,
  readJsonPatch,
} from '../request/request-body.ts';
import type {
  ApiObject,
  ResourceDefinition,
  StoredObject,
} from '../objects/resource-definition.ts';
import { goValue } from '../../util/go-format.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { NestingError, objectIn, textIn } from '../../util/json-value.ts';
import { withConvertedIntegers } from '../request/converted-integers.ts';
import { conversionProblem, convertedProblem } from '../request/unmarshal-problem.ts';
import { validateValues } from '../schema/validate.ts';
import { isRecord } from '../../util/values.ts';
import {
  StatusError,
  applyConflict,
  badRequest,
  conflict,
  tooLarge,
  unprocessable,
  unsupportedMediaType,
} from '../objects/status-error.ts';
import { createNamed, created } from './create.ts';
import { requireIdentity, requireName } from './identity.ts';
import { requireDecodable } from '../strategy/validation.ts';

const JSON_PATCH = 'application/json-patch+json';
const MERGE_PATCH = 'application/merge-patch+json';
export const STRATEGIC_PATCH = 'application/strategic-merge-patch+json';

export async function patch(call: Call): Promise<Answer> {
  if (isApplyPatch(contentType(call.request))) return apply(call);
  const { definition, request } = call;
  const keepsTexts = !definition.custom && contentType(request) !== STRATEGIC_PATCH;
  const sent = readJsonPatch(request, keepsTexts);
  return updateObject(call, async (live) => {
    await pause(call, live);
    const patched = await patchedBody(call, sent, live);
    await pause(call, live);
    const object = await decodeObjectOf(call, sent, patched, live);
    const complete = await defaultsInSteps(call, object, live);
    return { object: await withTrackedFields(call, complete, live) };
  });
}

/** Strategic merge patches and applies are converted from maps to the Go type of a built-in kind. */
function withIntegersOf(
  { custom, schema = {} }: ResourceDefinition,
  object: JsonObject,
): JsonObject {
  if (custom) return object;
  const converted = withConvertedIntegers(object, schema);
  return isRecord(converted) ? converted : object;
}

/** A strategic merge patch is converted from maps to the Go type of the kind. */
function requireConvertible(
  definition: ResourceDefinition,
  patched: unknown,
  toError: (message: string) => Error,
): void {
  if (!isRecord(patched)) return;
  const wrong = validateValues(patched, definition.schema ?? {}).find(isOfAnotherType);
  if (wrong) throw toError(conversionProblem(wrong, patched, goKindOf(definition)));
}

/** Without an apiVersion, upstream decodes the result to an internal type, whose fields have other names. */
export function requireApiVersion(
  call: Call,
  patched: unknown,
  toError: (message: string) => Error,
): void {
  if (call.definition.custom || !isRecord(patched) || patched['apiVersion']) return;
  const fields = Object.keys(patched)
    .sort()
    .filter((field) => field !== 'apiVersion' && field !== 'kind');
  const unknown = fields.map((field) => `unknown field ${JSON.stringify(field)}`);
  reportStrictErrors(call, [], unknown, toError);
  requireName(call, '');
}

/** Returns the object that the result of a patch describes. Drops unknown fields. */
async function decodeObjectOf(
  call: Call,
  sent: unknown,
  result: unknown,
  live: StoredObject,
): Promise<ApiObject> {
  const { definition } = call;
  const type = contentType(call.request);
  // As upstream, a strategic merge patch does not change the kind.
  const patched =
    type === STRATEGIC_PATCH && isRecord(result)
      ? {
          ...withIntegersOf(definition, result),
          apiVersion: apiVersionIn(definition),
          kind: definition.kind,
        }
      : result;
  const toError = (message: string) =>
    type === STRATEGIC_PATCH
      ? invalidPatch(goValue(sent), message)
      : unprocessablePatch(definition, patched, message);
  if (type === STRATEGIC_PATCH) requireConvertible(definition, patched, toError);
  else requireApiVersion(call, patched, toError);
  const { object, strictErrors } = decodePatched(call, patched, undefined, live);
  const prefix = type === JSON_PATCH ? 'json patch ' : '';
  const duplicates = duplicatesOf(call).map((duplicate) => `${prefix}${duplicate}`);
  reportStrictErrors(call, duplicates, strictErrors, (message) => {
    if (!definition.custom) requireGoTypes(call, object);
    return toError(message);
  });
  await pause(call, live);
  requireDecodable(call, object);
  requireIdentity(call, object);
  return object;
}

/**
 * Applies the patch `sent` to `live`.
 *
 * Rejects with a `StatusError`: 415 if the kind does not support patches of this type, 400 or 422 if the patch
 *   cannot be applied
 */
export function patchedBody(call: Call, sent: unknown, live: StoredObject): Promise<unknown> {
  const { definition, request } = call;
  return patching(() => {
    switch (contentType(request)) {
      case JSON_PATCH:
        return runSteps(call, jsonPatchInSteps(live, sent), live);
      case MERGE_PATCH:
        if (sent === null) throw badRequest('Invalid JSON Patch');
        return mergePatch(live, patchObject(sent, 'error decoding patch'));
      case STRATEGIC_PATCH:
        if (!definition.custom && definition.schema) {
          return strategicMergePatch(live, sent, definition.schema);
        }
        throw unsupportedMediaType(patchTypes(definition));
      default:
        throw unsupportedMediaType(patchTypes(definition));
    }
  });
}

/** Server-side apply. Creates the object if it does not exist. */
async function apply(call: Call): Promise<Answer> {
  const { definition, info } = call;
  parseBody(call.request, definition);
  await pause(call);
  const sent = readApplyPatch(call.request);
  const create = async () => {
    const { object, ...applied } = await appliedUpdate(call, sent, undefined);
    requireParsable(object.metadata.resourceVersion);
    return created(await createNamed(call, object, applied));
  };
  const creates = info.subresource === undefined || definition.createOnUpdate;
  const update = async (live: StoredObject) => {
    const { object, ...applied } = await appliedUpdate(call, sent, live);
    return { ...applied, object: await defaultsInSteps(call, object, live, 'keepNulls') };
  };
  return updateObject(call, update, creates ? create : undefined);
}

/** Returns the object after an apply, with its managed fields and without defaults. */
async function appliedUpdate(
  call: Call,
  sent: unknown,
  live: StoredObject | undefined,
): Promise<UpdatedObject> {
  const { definition, info } = call;
  const applied = appliedFields(sent, definition);
  await pause(call, live);
  const result = await patching(() =>
    applyWithLastApplied({
      ...writeContext(call),
      versions: fieldVersions(call),
      live,
      checksLive: definition.custom,
      blank: blankObject(call),
      applied,
      force: isTrue(info.query.get('force')),
      pause: () => pause(call, live),
    }),
  );
  const merged = appliedObject(result);
  await pause(call, live);
  const object = await decodeApplied(call, applied, merged, live);
  const { uid } = object.metadata;
  if (!live && uid) {
    throw conflict(
      definition,
      info.name ?? '',
      `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`,
    );
  }
  requireIdentity(call, object);
  return { object, writesEqual: isEncodedApart(call, merged) };
}

async function decodeApplied(
  call: Call,
  applied: JsonObject,
  merged: JsonObject,
  live: StoredObject | undefined,
): Promise<ApiObject> {
  reportStrictErrors(call, duplicatesOf(call), [], (message) =>
    badRequest(
      `error ${message.replace('strict decoding error', 'strict decoding patch: error converting YAML to JSON')}`,
    ),
  );
  await pause(call, live);
  const toError = (why: string) => notConverted(applied, why);
  const converted = withIntegersOf(call.definition, asDecoded(call, merged));
  const { object, strictErrors } = decodePatched(call, converted, toError);
  reportStrictErrors(call, [], strictErrors, (message) =>
    unprocessablePatch(call.definition, applied, message),
  );
  await pause(call, live);
  requireDecodable(call, object, toError);
  return object;
}

/**
 * As upstream, an apply stores a custom resource with empty labels, finalizers and the like, but reads it without
 * them. It therefore never equals the stored object, and each apply is a write.
 */
function isEncodedApart({ definition }: Call, { metadata }: JsonObject): boolean {
  if (!definition.custom || !isRecord(metadata)) return false;
  return SOMETIMES_EMPTY.some((name) => {
    const value = metadata[name];
    return (
      value === '' ||
      (typeof value === 'object' && value !== null && Object.keys(value).length === 0)
    );
  });
}

const SOMETIMES_EMPTY = [
  'annotations',
  'finalizers',
  'generateName',
  'labels',
  'ownerReferences',
] as const;

/** As upstream, the time of creation of an applied custom resource is not decoded. The server sets it. */
function asDecoded({ definition }: Call, next: JsonObject): JsonObject {
  if (!definition.custom) return next;
  const { creationTimestamp: _, ...metadata } = objectIn(next, 'metadata') ?? {};
  return { ...next, metadata };
}

/** Returns the 500 for an applied object with values that Go does not decode. */
function notConverted(applied: JsonObject, why: string): Error {
  const at = describe(applied);
  return StatusError.failure({
    code: 500,
    message: `failed to convert new object (${at}) to proper version: unable to convert unstructured object to ${at.slice(at.indexOf('; ') + 2)}: ${convertedProblem(why)}`,
  });
}

/** @throws {StatusError} 409 with the conflicts */
export function appliedObject(result: ApplyPatchResult): JsonObject {
  if (result.kind === 'applied') return result.object;
  const { message, causes } = describeConflicts(result.conflicts);
  throw applyConflict(message, causes);
}

export function decodePatched(
  { definition, request }: Call,
  patched: unknown,
  toError?: (why: string) => Error,
  live?: StoredObject,
): { object: ApiObject; strictErrors: string[] } {
  if (!isRecord(patched))
    throw unprocessablePatch(definition, patched, 'the result of the patch is not an object');
  const { object, strictErrors } = decodeObject(patched, definition, 'patch', toError, live);
  // As upstream, which sorts the keys of the result, except those of values in a JSON patch.
  if (!definition.custom && contentType(request) !== JSON_PATCH) strictErrors.sort();
  return { object, strictErrors };
}

/** @throws {StatusError} 400 if an applied body is no object, or has another kind or version */
export function appliedFields(
  sent: unknown,
  definition: ResourceDefinition,
): Record<string, unknown> {
  const applied = patchObject(
    sent ?? {},
    'error decoding patch: error unmarshaling JSON: while decoding JSON',
  );
  requireSameKind(applied, definition);
  return applied;
}

function requireSameKind(applied: Record<string, unknown>, definition: ResourceDefinition): void {
  const apiVersion = textIn(applied, 'apiVersion');
  const kind = textIn(applied, 'kind');
  if (apiVersion === apiVersionIn(definition) && kind === definition.kind) return;
  const parsed = parseGroupVersion(apiVersion);
  throw badRequest(
    parsed
      ? `invalid object type: ${parsed.group}/${parsed.version}, Kind=${kind}`
      : // As upstream, which reads neither of them then.
        'invalid object type: /, Kind=',
  );
}

function patchObject(value: unknown, trying: string): Record<string, unknown> {
  if (isRecord(value)) return value;
  throw badRequest(
    `${trying}: json: cannot unmarshal ${goTypeOf(value)} into Go value of type map[string]interface {}`,
  );
}

/** Returns the media types of patches that a kind accepts. */
export function patchTypes({ custom }: ResourceDefinition): string[] {
  return custom
    ? [JSON_PATCH, MERGE_PATCH, APPLY_PATCH]
    : [JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH];
}

/** Runs a patch function. Converts its errors to a Status. */
export async function patching<T>(run: () => T | Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw toStatusError(error);
  }
}

/** Returns the Status for an error of a patch function; other errors unchanged. */
function toStatusError(error: unknown): unknown {
  if (error instanceof NestingError) return badRequest(error.message);
  if (!(error instanceof PatchError)) return error;
  switch (error.kind) {
    case 'malformed':
      return badRequest(error.message);
    case 'tooLarge':
      return tooLarge(error.message);
    case 'invalid':
      return unprocessable();
    case 'untyped':
      return StatusError.failure({ code: 500, message: error.message });
  }
}
