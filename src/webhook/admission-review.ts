import { ApiError } from '../api/api-error.ts';
import { invalidStatus } from '../api/field-error.ts';
import type { FieldError } from '../api/field-error.ts';
import { valueAt } from '../api/field-path.ts';
import type { Draft, KubernetesObject } from '../api/object.ts';
import { isRecord } from '../util/values.ts';
import type {
  AdmissionEntry,
  AdmissionOperation,
  AdmissionRequest,
  AdmissionUser,
  DefaultingEntry,
} from './declaration.ts';
import { AdmissionDenied } from './field-errors.ts';
import { jsonPatchOf } from './json-patch.ts';

/** A JSON object whose members are not checked. */
export type Unchecked = Readonly<Record<string, unknown>>;

/** A review that an API server does not send, or not to this path. Answered with its status. */
export class BadReview extends Error {
  override readonly name = 'BadReview';
  readonly status: 400 | 413;

  constructor(message: string, status: 400 | 413 = 400) {
    super(message);
    this.status = status;
  }
}

/** @throws {BadReview} if it is missing or too long */
export function uidOf({ uid }: Unchecked): string {
  if (typeof uid === 'string' && uid !== '' && uid.length <= MAX_UID_LENGTH) return uid;
  throw new BadReview('request.uid is missing or too long');
}

interface Verdict {
  readonly allowed: boolean;
  readonly status?: object;
  /** `JSONPatch`, if there is a patch. */
  readonly patchType?: string;
  /** In base64. */
  readonly patch?: string;
}

/** The response of an AdmissionReview. */
export interface AdmissionResponse extends Verdict, Unchecked {
  readonly uid: string;
  readonly warnings?: readonly string[];
}

const MAX_UID_LENGTH = 253;

const OPERATIONS: ReadonlySet<unknown> = new Set(['CREATE', 'UPDATE', 'DELETE', 'CONNECT']);

/**
 * Calls the function of `entry` for the request of an AdmissionReview.
 *
 * @param signal aborts at the timeout
 * @throws {BadReview} if the request is not one for this function
 * @throws what the function throws, unless it rejects the request
 */
export async function reviewAdmission(
  entry: AdmissionEntry,
  review: Unchecked,
  signal: AbortSignal,
): Promise<AdmissionResponse> {
  const uid = uidOf(review);
  const { operation } = review;
  if (!OPERATIONS.has(operation)) throw new BadReview('request.operation is not an operation');
  checkResource(entry, review);
  const { operations, whileDeleting } = entry.options;
  const reviewed = operations.find((one) => one === operation);
  // A configuration of another release can name more operations.
  if (reviewed === undefined) return { uid, allowed: true };
  const warnings: string[] = [];
  const request = requestOf(review, uid, reviewed, signal, warnings);
  if (request.old?.metadata.deletionTimestamp !== undefined && !whileDeleting) {
    return { uid, allowed: true };
  }
  const response = await respond(entry, request, review);
  return { uid, ...response, ...(warnings.length > 0 && { warnings }) };
}

async function respond(
  entry: AdmissionEntry,
  request: AdmissionRequest,
  review: Unchecked,
): Promise<Verdict> {
  try {
    if (entry.type === 'mutating') {
      const changed = await changedText(entry, request);
      const operations = changed ? jsonPatchOf(request.object, JSON.parse(changed)) : [];
      if (operations.length === 0) return { allowed: true };
      const patch = Buffer.from(JSON.stringify(operations)).toString('base64');
      return { allowed: true, patchType: 'JSONPatch', patch };
    }
    const errors: unknown = await entry.run(request.object, request);
    if (errors === undefined || errors === null) return { allowed: true };
    const found = checkedErrors(errors, request.object);
    if (found.length === 0) return { allowed: true };
    const { group, kind } = objectKind(entry, review);
    const name = request.name || (request.object.metadata.generateName ?? '');
    return { allowed: false, status: invalidStatus({ group, kind, name }, found) };
  } catch (error) {
    const status = statusOf(error);
    if (!status) throw error;
    return { allowed: false, status };
  }
}

/** Returns the object with its defaults as JSON; undefined if nothing has changed. */
async function changedText(
  { run }: DefaultingEntry,
  request: AdmissionRequest,
): Promise<string | undefined> {
  const text = JSON.stringify(request.object);
  const draft = JSON.parse(text) as Draft<KubernetesObject>;
  await run(draft, request);
  const changed = JSON.stringify(draft);
  return changed === text ? undefined : changed;
}

/** A subresource can have objects of another kind, as `eviction` has. */
function objectKind({ resource }: AdmissionEntry, { kind }: Unchecked) {
  const { group, kind: name } = isRecord(kind) ? kind : {};
  return typeof group === 'string' && typeof name === 'string'
    ? { group, kind: name }
    : { group: resource.group, kind: resource.kind };
}

/** @throws {BadReview} if the request is for another resource, which a wrong configuration causes */
function checkResource({ resource, options }: AdmissionEntry, review: Unchecked): void {
  const { resource: sent, subResource = '' } = review;
  if (!isRecord(sent)) throw new BadReview('request.resource is missing');
  const { group, version, plural } = resource;
  if (sent['group'] !== group || sent['version'] !== version || sent['resource'] !== plural) {
    throw new BadReview('request.resource is not the resource of this path');
  }
  if (!options.subresources.some((one) => one === subResource)) {
    throw new BadReview('request.subResource is not one of this path');
  }
}

function requestOf(
  review: Unchecked,
  uid: string,
  operation: AdmissionOperation,
  signal: AbortSignal,
  warnings: string[],
): AdmissionRequest {
  const { namespace, name, subResource, dryRun, options } = review;
  const old = operation === 'CREATE' ? undefined : objectIn(review, 'oldObject');
  const object = operation === 'DELETE' ? old : objectIn(review, 'object');
  return {
    uid,
    operation,
    // One of the two is there for each operation.
    object: object as Draft<KubernetesObject>,
    old: operation === 'UPDATE' ? old : undefined,
    user: userOf(review['userInfo']),
    isDryRun: dryRun === true,
    namespace: text(namespace),
    name: text(name) ?? '',
    subresource: text(subResource),
    options: isRecord(options) ? options : {},
    signal,
    warn(warning) {
      if (typeof warning !== 'string') throw new TypeError('warn: the warning must be a text');
      warnings.push(warning);
    },
  };
}

/** @throws {BadReview} if there is no object with metadata */
function objectIn(review: Unchecked, field: 'object' | 'oldObject'): KubernetesObject {
  const object = review[field];
  if (!isRecord(object) || typeof object['kind'] !== 'string' || !isRecord(object['metadata'])) {
    throw new BadReview(`request.${field} is not an object`);
  }
  // Its other fields have the types of the schema, which the API server has checked.
  return object as unknown as KubernetesObject;
}

function userOf(userInfo: unknown): AdmissionUser {
  const { username, uid, groups, extra } = isRecord(userInfo) ? userInfo : {};
  const values = isRecord(extra) ? Object.entries(extra) : [];
  return {
    username: text(username) ?? '',
    uid: text(uid),
    groups: texts(groups),
    extra: Object.fromEntries(values.map(([key, value]) => [key, texts(value)])),
  };
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
}

/**
 * Returns the errors of a validator, each with its value.
 *
 * @throws {TypeError} if the validator returned something else
 */
function checkedErrors(errors: unknown, object: unknown): readonly FieldError[] {
  if (!Array.isArray(errors)) throw new TypeError('The validator did not return a list of errors');
  return errors.map((error: unknown) => {
    if (!isFieldError(error)) {
      throw new TypeError('The validator returned a list with a value that is not a field error');
    }
    if ('badValue' in error) return error;
    return { ...error, badValue: valueAt(object, pathOf(error.field)) };
  });
}

function isFieldError(error: unknown): error is FieldError {
  return (
    isRecord(error) &&
    typeof error['field'] === 'string' &&
    typeof error['detail'] === 'string' &&
    typeof error['reason'] === 'string'
  );
}

/** Returns the steps of `spec.list[0].name` and `metadata.labels[a.b/c]`. */
function pathOf(field: string): string[] {
  return Array.from(field.matchAll(/\[([^\]]*)\]|[^.[\]]+/g), ([step, key]) => key ?? step);
}

/**
 * Returns the Status of an error that rejects the request. Errors of a request to the API server do so if they are
 * about the request, as in controller-runtime; otherwise the failure policy decides.
 */
function statusOf(error: unknown): object | undefined {
  const isDenial =
    error instanceof AdmissionDenied ||
    (error instanceof ApiError && error.code >= 400 && error.code < 500 && error.code !== 429);
  if (!isDenial) return undefined;
  const { code, message, reason, details } = error;
  return {
    status: 'Failure',
    message,
    ...(reason !== undefined && { reason }),
    ...(details && { details }),
    code,
  };
}
