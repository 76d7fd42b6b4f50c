import { parseGroupVersion } from '../../api/resource.ts';
import type { ReceivedRequest } from './received-request.ts';
import type { ObjectMeta } from '../../api/object.ts';
import { goMetadataSchema } from '../protobuf/go-schema.ts';
import { objectMetaSchema } from '../schema/builtin-schemas.ts';
import { pause } from './pause.ts';
import { goTypeOf, notRegistered, textOrJson } from '../json/go-json.ts';
import { apiVersionIn } from './negotiation.ts';
import type {
  ApiObject,
  ResourceDefinition,
  StoredObject,
} from '../objects/resource-definition.ts';
import { shallowCopy } from '../objects/resource-definition.ts';
import { parseBody, readObject, unrecognized } from './request-body.ts';
import { goJson } from '../../util/go-format.ts';
import { goQuote } from '../../util/go-quote.ts';
import { messageOfKind } from '../protobuf/protobuf-body.ts';
import { withoutZeroValues } from '../protobuf/zero-values.ts';
import { compareText, isRecord } from '../../util/values.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { MAX_REPORTED, pruneCopy, prunedValue } from '../schema/pruning.ts';
import { badRequest } from '../objects/status-error.ts';
import { messageTypeOf } from '../protobuf/decode-message.ts';
import { cannotBeHandled, unprocessablePatch } from './decoding-errors.ts';
import { decodingProblem, metadataProblem, notMetadata, requireGoTypes } from './go-types.ts';
import { duplicatesOf, fieldValidationOf, reportStrictErrors } from './strict-errors.ts';

/**
 * Decodes the body of a request to an object of the kind in its path.
 *
 * @throws {StatusError} 400 or 422 if the body is not such an object
 */
export async function decodeBody(call: ReceivedRequest): Promise<ApiObject> {
  const { request, definition } = call;
  parseBody(request, definition);
  await pause(call);
  const body = readObject(request, definition);
  await pause(call);
  // As upstream, where only strict decoding does not know the kind of the path.
  if (definition.custom && !body['kind'] && fieldValidationOf(call) === 'Ignore') {
    throw cannotBeHandled(definition, missingKind(JSON.stringify(body)), body);
  }
  const decoded = decodeObject(body, definition);
  await pause(call);
  return withoutUnknownFields(call, body, decoded);
}

/**
 * Decodes the body of a request to a subresource to the object of another kind.
 *
 * @throws {StatusError} 400 if the body is not such an object
 */
export async function decodeAs(
  definition: ResourceDefinition,
  call: ReceivedRequest,
): Promise<ApiObject> {
  const ofKind = { ...call, definition };
  const object = await decodeBody(ofKind);
  requireGoTypes(ofKind, object);
  return object;
}

function withoutUnknownFields(
  call: ReceivedRequest,
  body: object,
  { object, strictErrors }: ReturnType<typeof decodeObject>,
): ApiObject {
  const { definition } = call;
  // As upstream, duplicate and unknown fields of a custom resource are found separately.
  const found = duplicatesOf(call, definition.custom ? [] : strictErrors, body);
  const others = strictErrors.filter((strictError) => !found.includes(strictError));
  reportStrictErrors(call, found, others, (message) => {
    if (!definition.custom) requireGoTypes(call, object);
    else if (object.apiVersion === '') {
      return badRequest("Object 'apiVersion' is missing in 'object has no apiVersion field'");
    }
    // As upstream, whose error names the kind of the decoded object.
    return cannotBeHandled({ ...definition, kind: object.kind }, message, object);
  });
  if (definition.custom) requireVersion(object, definition);
  return object;
}

/** @throws {StatusError} 400 if a custom resource has another apiVersion than the path */
function requireVersion({ apiVersion }: ApiObject, definition: ResourceDefinition): void {
  const expected = apiVersionIn(definition);
  if (apiVersion === expected) return;
  throw badRequest(
    `the API version in the data (${apiVersion}) does not match the expected API version (${expected})`,
  );
}

/**
 * Decodes a JSON object to an object of a kind. Checks identity and metadata, and prunes unknown fields.
 *
 * @param from origin of the JSON object: a body or the result of a patch
 * @param toError returns the error for metadata that Go does not decode
 * @param live the object that was patched, whose metadata is decoded if the patch has not changed it
 * @returns the object, and warnings such as `unknown field "spec.x"`
 * @throws {StatusError} 400 or 422 if it has another kind or is not an API object
 */
export function decodeObject(
  body: Record<string, unknown>,
  definition: ResourceDefinition,
  from: 'body' | 'patch' = 'body',
  toError: (why: string) => Error = (why) =>
    from === 'patch'
      ? unprocessablePatch(definition, body, why)
      : cannotBeHandled(definition, why, body),
  live?: StoredObject,
): { object: ApiObject; strictErrors: string[] } {
  requireTexts(body, definition, from);
  if (definition.custom) requireCustomKind(body, definition, from, toError);
  else requireBuiltinKind(body, definition, from);
  const dropped: string[] = [];
  const metadata =
    live && body['metadata'] === live.metadata
      ? shallowCopy(live).metadata
      : decodeMetadata(body['metadata'], definition, dropped, (why) =>
          toError(definition.custom ? why : (decodingProblem(body, definition, from) ?? why)),
        );
  const identity = {
    apiVersion: definition.custom ? textOrJson(body['apiVersion'] ?? '') : apiVersionIn(definition),
    kind: definition.custom ? textOrJson(body['kind']) : definition.kind,
  };
  // Before the members are copied, because most of a wide object may be unknown.
  const known = prunedBody(body, identity, definition);
  const { apiVersion: _apiVersion, kind: _kind, metadata: _metadata, ...rest } = known.value;
  const object: ApiObject = { ...identity, metadata, ...rest };
  if (definition.custom) for (const paths of [dropped, known.dropped]) paths.sort();
  const unknown = [...dropped, ...known.dropped];
  // As upstream, where the members of a built-in kind are sorted unless the client sent them.
  if (!definition.custom) unknown.sort((a, b) => compareText(memberOf(a), memberOf(b)));
  const strictErrors = unknown
    .slice(0, MAX_REPORTED)
    .map((path) => `unknown field ${goQuote(path)}`);
  return { object: goObject(object, definition), strictErrors };
}

/** `spec` of `spec.list[0].x` */
function memberOf(path: string): string {
  return /^[^.[]*/.exec(path)?.[0] ?? '';
}

/** Returns an object of a built-in kind as Go encodes it: `kind` is first, and some zero values are omitted. */
export function goObject(decoded: ApiObject, definition: ResourceDefinition): ApiObject {
  const message = messageOfKind(definition);
  if (!message) return decoded;
  const { metadata, ...object } = decoded;
  const { apiVersion, kind } = object;
  return { kind, apiVersion, metadata, ...withoutZeroValues(object, message) };
}

/** Checks the types of kind and apiVersion, which Go decodes before the others. */
function requireTexts(
  body: Record<string, unknown>,
  definition: ResourceDefinition,
  from: 'body' | 'patch',
): void {
  for (const field of ['kind', 'apiVersion']) {
    const value = body[field] ?? '';
    if (typeof value === 'string') continue;
    const why = `couldn't get version/kind; json parse error: json: cannot unmarshal ${goTypeOf(value)} into Go struct field .${field} of type string`;
    throw unidentified(body, definition, from, why);
  }
}

/** Returns the error for a body whose kind or apiVersion cannot be read. */
function unidentified(
  body: Record<string, unknown>,
  definition: ResourceDefinition,
  from: 'body' | 'patch',
  why: string,
): Error {
  return from === 'patch'
    ? unprocessablePatch(definition, body, why)
    : unrecognized(definition, why, JSON.stringify(body));
}

function missingKind(text: string): string {
  return `Object 'Kind' is missing in '${text}'`;
}

/** Checks that a custom resource has a kind and a readable apiVersion, which validation compares. */
function requireCustomKind(
  body: Record<string, unknown>,
  definition: ResourceDefinition,
  from: 'body' | 'patch',
  toError: (why: string) => Error,
): void {
  const { apiVersion, kind } = body;
  if (!kind) {
    const text = from === 'patch' ? goJson(body) : JSON.stringify(body);
    throw unidentified(body, definition, from, missingKind(text));
  }
  if (apiVersion === null) {
    throw toError('.apiVersion accessor error: <nil> is of the type <nil>, expected string');
  }
  requireGroupVersion(textOrJson(apiVersion ?? ''), body, definition, from);
}

function requireGroupVersion(
  apiVersion: string,
  body: Record<string, unknown>,
  definition: ResourceDefinition,
  from: 'body' | 'patch',
): Pick<ResourceDefinition, 'group' | 'version'> {
  const parsed = parseGroupVersion(apiVersion);
  if (parsed) return parsed;
  throw unidentified(body, definition, from, `unexpected GroupVersion string: ${apiVersion}`);
}

/**
 * Returns a body without unknown fields: a custom resource by the schema of its own version. As upstream, validation
 * compares its kind, and its version in a patch.
 */
function prunedBody(
  body: Record<string, unknown>,
  identity: Pick<ApiObject, 'apiVersion' | 'kind'>,
  { custom, schema, group, kind, versionSchemas = {} }: ResourceDefinition,
): ReturnType<typeof pruneCopy> {
  if (!custom) return schema ? pruneCopy(body, schema) : { value: body, dropped: [] };
  const [own, version = ''] = identity.apiVersion.split('/');
  if (own !== group || identity.kind !== kind) return { value: body, dropped: [] };
  const ofVersion = Object.hasOwn(versionSchemas, version) ? versionSchemas[version] : undefined;
  return pruneCopy(body, ofVersion ?? {}, {
    metadata: objectMetaSchema(),
    decoded: (metadata) =>
      metadataProblem(metadata) === undefined
        ? withoutZeroValues(metadata, messageTypeOf('meta.v1.ObjectMeta'))
        : metadata,
  });
}

/** Checks the apiVersion and kind of a built-in kind, if they are present. */
function requireBuiltinKind(
  body: Record<string, unknown>,
  definition: ResourceDefinition,
  from: 'body' | 'patch',
): void {
  const expected = apiVersionIn(definition);
  const sent = textOrJson(body['apiVersion'] || expected);
  const { group, version } = requireGroupVersion(sent, body, definition, from);
  const isDefault = version === '' && (group === '' || group === definition.group);
  const apiVersion = isDefault ? expected : group === '' ? version : sent;
  const kind = textOrJson(body['kind'] || definition.kind);
  if (kind === definition.kind && apiVersion === expected) return;
  const why =
    version === '' && !isDefault
      ? `Object 'apiVersion' is missing in '${JSON.stringify(body)}'`
      : notRegistered(kind, apiVersion);
  throw from === 'patch'
    ? unprocessablePatch(definition, body, why)
    : cannotBeHandled(definition, why, body);
}

function decodeMetadata(
  value: unknown,
  { custom, kind }: ResourceDefinition,
  dropped: string[],
  toError: (why: string) => Error,
): ObjectMeta {
  const sent = value ?? {};
  if (!isRecord(sent)) {
    throw toError(
      custom
        ? notMetadata(sent)
        : `json: cannot unmarshal ${goTypeOf(sent)} into Go struct field ${kind}.metadata of type v1.ObjectMeta`,
    );
  }
  const problem = metadataProblem(sent);
  if (problem !== undefined) throw toError(problem);
  const known = prunedValue(sent, goMetadataSchema(), 'metadata');
  for (const path of known.dropped) dropped.push(path);
  const metadata = withoutZeroValues(
    known.value as JsonObject,
    messageTypeOf('meta.v1.ObjectMeta'),
  );
  // Upstream reads the times of a custom resource when it needs them.
  if (custom && metadata['deletionTimestamp'] === null) delete metadata['deletionTimestamp'];
  // As upstream, an empty list of a built-in kind resets the managers, as a list with an empty entry does.
  const { managedFields } = known.value as JsonObject;
  const resets = !custom && Array.isArray(managedFields) && managedFields.length === 0;
  const decoded = { name: '', ...metadata, ...(resets && { managedFields: [{}] }) };
  return decoded as Partial<ObjectMeta> as ObjectMeta;
}
