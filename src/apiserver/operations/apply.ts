import { parseGroupVersion } from '../../api/resource.ts';
import { requireParsable } from '../strategy/before-update.ts';
import { defaultsInSteps } from '../strategy/defaults.ts';
import type { Answer, Call } from './call.ts';
import type { UpdatedObject } from './guaranteed-update.ts';
import { updateObject } from './guaranteed-update.ts';
import { blankObject, fieldVersions, writeContext } from '../managedfields/field-manager.ts';
import { apiVersionIn } from '../request/negotiation.ts';
import { pause } from '../request/pause.ts';
import { duplicatesOf, reportStrictErrors } from '../request/strict-errors.ts';
import { unprocessablePatch } from '../request/decoding-errors.ts';
import type { ApplyPatchResult } from '../managedfields/apply.ts';
import { describeConflicts } from '../managedfields/apply.ts';
import { describe } from '../managedfields/typed-value.ts';
import { applyWithLastApplied } from '../managedfields/last-applied.ts';
import { isTrue } from '../request/request-info.ts';
import { parseBody, readApplyPatch } from '../request/request-body.ts';
import type {
  ApiObject,
  ResourceDefinition,
  StoredObject,
} from '../objects/resource-definition.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { objectIn, textIn } from '../../util/json-value.ts';
import { convertedProblem } from '../request/unmarshal-problem.ts';
import { isRecord } from '../../util/values.ts';
import { StatusError, applyConflict, badRequest, conflict } from '../objects/status-error.ts';
import { createNamed, created } from './create.ts';
import { decodePatched, patchObject, patching, withIntegersOf } from './patch.ts';
import { requireIdentity } from './identity.ts';
import { requireDecodable } from '../strategy/validation.ts';

/** Server-side apply. Creates the object if it does not exist. */
export async function serverSideApply(call: Call): Promise<Answer> {
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
