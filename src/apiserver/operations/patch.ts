import { defaultsInSteps } from '../strategy/defaults.ts';
import type { Answer, Call } from './call.ts';
import { updateObject } from './guaranteed-update.ts';
import { withTrackedFields } from '../managedfields/field-manager.ts';
import { goTypeOf } from '../json/go-json.ts';
import { apiVersionIn } from '../request/negotiation.ts';
import { pause, runSteps } from '../request/pause.ts';
import { decodeObject } from '../request/object-decoder.ts';
import { duplicatesOf, reportStrictErrors } from '../request/strict-errors.ts';
import { goKindOf, isOfAnotherType, requireGoTypes } from '../request/go-types.ts';
import { invalidPatch, unprocessablePatch } from '../request/decoding-errors.ts';
import { jsonPatchInSteps, mergePatch, PatchError } from '../patch/json-patch.ts';
import { strategicMergePatch } from '../patch/strategic-merge-patch.ts';
import { APPLY_PATCH, contentType, readJsonPatch } from '../request/request-body.ts';
import type {
  ApiObject,
  ResourceDefinition,
  StoredObject,
} from '../objects/resource-definition.ts';
import { goValue } from '../../util/go-format.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { NestingError } from '../../util/json-value.ts';
import { withConvertedIntegers } from '../request/converted-integers.ts';
import { conversionProblem } from '../request/unmarshal-problem.ts';
import { validateValues } from '../schema/validate.ts';
import { isRecord } from '../../util/values.ts';
import {
  StatusError,
  badRequest,
  tooLarge,
  unprocessable,
  unsupportedMediaType,
} from '../objects/status-error.ts';
import { requireIdentity, requireName } from './identity.ts';
import { requireDecodable } from '../strategy/validation.ts';

const JSON_PATCH = 'application/json-patch+json';
const MERGE_PATCH = 'application/merge-patch+json';
export const STRATEGIC_PATCH = 'application/strategic-merge-patch+json';

export async function patch(call: Call): Promise<Answer> {
  const { definition, request } = call;
  const keepsTexts = !definition.custom && contentType(request) !== STRATEGIC_PATCH;
  const sent = readJsonPatch(request, keepsTexts);
  return updateObject(call, async (live) => {
    await pause(call, live);
    const patched = await patchedBody(call, sent, live);
    await pause(call, live);
    const object = await decodeResult(call, sent, patched, live);
    const complete = await defaultsInSteps(call, object, live);
    return { object: await withTrackedFields(call, complete, live) };
  });
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

/** Returns the object that the result of a patch describes. Drops unknown fields. */
async function decodeResult(
  call: Call,
  sent: unknown,
  result: unknown,
  live: StoredObject,
): Promise<ApiObject> {
  const { definition } = call;
  const type = contentType(call.request);
  const toError = (message: string) =>
    type === STRATEGIC_PATCH
      ? invalidPatch(goValue(sent), message)
      : unprocessablePatch(definition, result, message);
  let patched = result;
  if (type !== STRATEGIC_PATCH) {
    requireApiVersion(call, result, toError);
  } else if (isRecord(result)) {
    const converted = withIntegersOf(definition, result);
    requireConvertible(definition, converted, toError);
    // As upstream, a strategic merge patch does not change the kind.
    patched = { ...converted, apiVersion: apiVersionIn(definition), kind: definition.kind };
  }
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

/** Strategic merge patches and applies are converted from maps to the Go type of a built-in kind. */
export function withIntegersOf(
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
  patched: JsonObject,
  toError: (message: string) => Error,
): void {
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

/** Returns the object that the result of a patch describes, and its unknown fields. */
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

/** @throws {StatusError} 400 if a patch is no object */
export function patchObject(value: unknown, trying: string): Record<string, unknown> {
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
