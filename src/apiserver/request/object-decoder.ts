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
import {
  duplicateFields,
  parseBody,
  readObject,
  strictDuplicates,
  unrecognized,
} from './request-body.ts';
import type { FieldError } from '../../api/field-error.ts';
import { fieldError } from '../../api/field-error.ts';
import { goJson, withSortedKeys } from '../../util/go-format.ts';
import { goQuote } from '../../util/go-quote.ts';
import type { MessageType } from '../protobuf/decode-message.ts';
import { messageTypeOf } from '../protobuf/decode-message.ts';
import { messageOfKind } from '../protobuf/protobuf-body.ts';
import { withoutZeroValues } from '../protobuf/zero-values.ts';
import { compareText, isRecord } from '../../util/values.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { MAX_REPORTED, pruneCopy, prunedValue } from '../schema/pruning.ts';
import type { GoKind } from './unmarshal-problem.ts';
import { endsDecoding, isOutOfRange, unmarshalProblem } from './unmarshal-problem.ts';
import { validateValues } from '../schema/validate.ts';
import { badRequest, invalidError } from '../objects/status-error.ts';

export type FieldValidation = 'Ignore' | 'Warn' | 'Strict';

/** Returns the `fieldValidation` of the query, which is already validated. */
function fieldValidationOf({ info }: ReceivedRequest): FieldValidation {
  const value = info.query.get('fieldValidation');
  return value === 'Ignore' || value === 'Strict' ? value : 'Warn';
}

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

/** Returns the duplicate fields in the body, and those of `unknown` in JSON, unless the client ignores them. */
export function duplicatesOf(
  call: ReceivedRequest,
  unknown?: readonly string[],
  decoded?: object,
): readonly string[] {
  return fieldValidationOf(call) === 'Ignore'
    ? []
    : duplicateFields(call.request, unknown, decoded);
}

/**
 * Handles duplicate and unknown fields by the requested `fieldValidation`.
 *
 * @throws {StatusError} the result of `toError` for Strict
 */
export function reportStrictErrors(
  call: ReceivedRequest,
  duplicates: readonly string[],
  strictErrors: readonly string[],
  toError: (message: string) => Error,
): void {
  if (duplicates.length + strictErrors.length === 0) return;
  switch (fieldValidationOf(call)) {
    case 'Ignore':
      return;
    case 'Warn':
      for (const strictError of [...duplicates, ...strictErrors]) call.warnings.push(strictError);
      return;
    case 'Strict': {
      const problems = [...strictDuplicates(call.request, duplicates), ...strictErrors];
      throw toError(`strict decoding error: ${problems.join(', ')}`);
    }
  }
}

/** Whether Go does not decode a value. It decodes null, and an empty text to no bytes. */
export function isOfAnotherType({ reason, badValue, detail }: FieldError): boolean {
  if (isOutOfRange({ detail })) return true;
  return (
    reason === 'FieldValueTypeInvalid' &&
    badValue !== 'null' &&
    !(badValue === '' && detail.includes('must be of type byte'))
  );
}

/**
 * Built-in kinds are Go types, which do not decode values of other types.
 *
 * @throws {StatusError} 400, or 422 of a patch
 */
export function requireGoTypes(
  { definition, info, warnings }: Pick<ReceivedRequest, 'definition' | 'info' | 'warnings'>,
  object: StoredObject,
  toError: (why: string) => Error = (why) =>
    info.verb === 'patch'
      ? unprocessablePatch(definition, object, why)
      : cannotBeHandled(definition, why),
): void {
  let wrong = firstMismatch(validateValues(object, definition.schema ?? {}));
  if (!wrong) return;
  // A patch encodes what it has changed with sorted keys.
  if (info.verb === 'patch') {
    wrong = firstMismatch(validateValues(withSortedKeys(object), definition.schema ?? {})) ?? wrong;
  }
  // As upstream, an object that cannot be decoded has no unknown fields. The first warning is about the kind.
  warnings.length = definition.deprecationWarning === undefined ? 0 : 1;
  throw toError(unmarshalProblem(wrong, object, goKindOf(definition)));
}

/** As upstream, the decoder stops at a value of a type that decodes itself, and continues after other values. */
function firstMismatch(errors: readonly FieldError[]): FieldError | undefined {
  const end = errors.find((error, index) => endsDecoding(error, errors[index - 1]));
  return end ?? errors.find(isOfAnotherType);
}

/** Returns why Go does not decode an object: the first value of another type. */
function decodingProblem(
  body: Readonly<Record<string, unknown>>,
  definition: ResourceDefinition,
  from: 'body' | 'patch',
): string | undefined {
  const json = from === 'patch' ? withSortedKeys(body) : body;
  const wrong = firstMismatch(validateValues(json, definition.schema ?? {}));
  return wrong && unmarshalProblem(wrong, body, goKindOf(definition));
}

export function goKindOf(definition: ResourceDefinition): GoKind {
  const { kind, schema = {} } = definition;
  return { kind, schema, message: messageOfKind(definition) };
}

/** Returns the 400 for a body that is no object of a kind, with the kind and version that it has. */
export function cannotBeHandled(
  definition: ResourceDefinition,
  why: string,
  sent: Readonly<Record<string, unknown>> = {},
): Error {
  const { kind } = definition;
  const apiVersion =
    sent['apiVersion'] === null ? '' : textOrJson(sent['apiVersion'] || apiVersionIn(definition));
  const version = goQuote(apiVersion.split('/').at(-1) ?? '');
  const sentKind = textOrJson(sent['kind'] || kind);
  return badRequest(`${sentKind} in version ${version} cannot be handled as a ${kind}: ${why}`);
}

/** Returns the 422 for a patch whose result is not an object of its kind. */
export function unprocessablePatch(
  { custom }: Pick<ResourceDefinition, 'custom'>,
  patched: unknown,
  why: string,
): Error {
  return invalidPatch(custom ? goJson(patched) : patchedText(patched), why);
}

export function invalidPatch(shown: string, why: string): Error {
  return invalidError({ group: '', kind: '' }, '', [fieldError.invalid('patch', shown, why)]);
}

/** Encodes the result of a patch of a built-in kind: sorted, but metadata has the order of Go's struct. */
function patchedText(patched: unknown): string {
  if (!isRecord(patched) || !isRecord(patched['metadata'])) return goJson(patched);
  const { metadata } = patched;
  const ordered = [...objectMeta().fields.values()]
    .map(({ name = '' }) => name)
    .filter((name) => metadata[name] !== undefined)
    .map((name) => `${JSON.stringify(name)}:${goJson(metadata[name])}`);
  const members = Object.keys(patched)
    .sort()
    .map((name) => {
      const text = name === 'metadata' ? `{${ordered.join(',')}}` : goJson(patched[name]);
      return `${JSON.stringify(name)}:${text}`;
    });
  return `{${members.join(',')}}`;
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
        ? withoutZeroValues(metadata, objectMeta())
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
  const metadata = withoutZeroValues(known.value as JsonObject, objectMeta());
  // Upstream reads the times of a custom resource when it needs them.
  if (custom && metadata['deletionTimestamp'] === null) delete metadata['deletionTimestamp'];
  // As upstream, an empty list of a built-in kind resets the managers, as a list with an empty entry does.
  const { managedFields } = known.value as JsonObject;
  const resets = !custom && Array.isArray(managedFields) && managedFields.length === 0;
  const decoded = { name: '', ...metadata, ...(resets && { managedFields: [{}] }) };
  return decoded as Partial<ObjectMeta> as ObjectMeta;
}

/** Returns why Go does not decode metadata, undefined if it does. */
export function metadataProblem(value: unknown): string | undefined {
  if (!isRecord(value)) return notMetadata(value);
  const schema = goMetadataSchema();
  const wrong = firstMismatch(validateValues(value, schema));
  return (
    wrong && unmarshalProblem(wrong, value, { kind: 'ObjectMeta', schema, message: objectMeta() })
  );
}

function notMetadata(value: unknown): string {
  return `json: cannot unmarshal ${goTypeOf(value)} into Go value of type v1.ObjectMeta`;
}

function objectMeta(): MessageType {
  return messageTypeOf('meta.v1.ObjectMeta');
}
