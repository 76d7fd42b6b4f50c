import type { Resource } from '../../api/resource.ts';
import { groupResourceOf } from '../../api/resource.ts';
import type { ResourceDefinition } from './resource-definition.ts';
import type { Action } from '../../api/policy-rule.ts';
import type { User } from '../../api/user.ts';
import type { Status, StatusCause, StatusDetails } from '../../api/status.ts';
import { goQuote } from '../../util/go-quote.ts';
import type { FieldError } from '../../api/field-error.ts';
import { invalidStatus } from '../../api/field-error.ts';

type Names = Pick<Resource, 'group' | 'plural'>;
type Kind = Pick<Resource, 'group' | 'kind'>;

interface Failure {
  readonly code: number;
  readonly message: string;
  readonly reason?: string;
  readonly details?: StatusDetails;
}

/**
 * A failure response: thrown below the handler, sent as a metav1.Status. Codes, reasons and messages
 * are those of kube-apiserver, because clients and users depend on them.
 */
export class StatusError extends Error {
  override readonly name = 'StatusError';
  readonly status: Status;

  constructor(status: Status) {
    super(status.message);
    this.status = status;
  }

  static failure({ code, message, reason, details }: Failure): StatusError {
    return new StatusError({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message,
      ...(reason !== undefined && { reason }),
      ...(details !== undefined && { details }),
      code,
    });
  }
}

/** The reason of each code; a failure with another one has it in `StatusError.failure`. */
const REASONS: ReadonlyMap<number, string> = new Map([
  [400, 'BadRequest'],
  [401, 'Unauthorized'],
  [403, 'Forbidden'],
  [404, 'NotFound'],
  [405, 'MethodNotAllowed'],
  [406, 'NotAcceptable'],
  [409, 'Conflict'],
  [410, 'Expired'],
  [413, 'RequestEntityTooLarge'],
  [415, 'UnsupportedMediaType'],
  [422, 'Invalid'],
  [429, 'TooManyRequests'],
  [500, 'InternalError'],
  [503, 'ServiceUnavailable'],
  [504, 'Timeout'],
]);

function failure(code: number, message: string, details?: StatusDetails): StatusError {
  const reason = REASONS.get(code);
  return StatusError.failure({
    code,
    message,
    ...(reason && { reason }),
    ...(details && { details }),
  });
}

export function badRequest(message: string): StatusError {
  return failure(400, message);
}

/** The 504 for a request that takes too long. */
export function requestTimeout(): StatusError {
  const message =
    'Timeout: request did not complete within requested timeout - context deadline exceeded';
  return failure(504, message);
}

export function unauthorized(): StatusError {
  return failure(401, 'Unauthorized');
}

export function forbiddenError(
  resource: Names,
  name: string,
  why: string,
  causes?: StatusCause[],
): StatusError {
  const message = `${groupResourceOf(resource)}${name && ` ${goQuote(name)}`} is forbidden: ${why}`;
  return failure(403, message, { ...detailsOf(resource, name), ...(causes && { causes }) });
}

/** The user is not allowed to do the action. `reason` is the one of the authorizer, if it has one. */
export function accessDenied({ name: user }: User, action: Action, reason: string): StatusError {
  const why = reason && `: ${reason}`;
  const { kind, verb } = action;
  if (kind === 'path') {
    const message = `forbidden: User ${goQuote(user)} cannot ${verb} path ${goQuote(action.path)}${why}`;
    return failure(403, message, {});
  }
  const { group, resource, subresource, namespace, name } = action;
  const names = { group, plural: resource };
  const what = name ? `${groupResourceOf(names)} ${goQuote(name)}` : groupResourceOf(names);
  const full = subresource ? `${resource}/${subresource}` : resource;
  const where = namespace ? `in the namespace ${goQuote(namespace)}` : 'at the cluster scope';
  const message = `${what} is forbidden: User ${goQuote(user)} cannot ${verb} resource ${goQuote(full)} in API group ${goQuote(group)} ${where}${why}`;
  return failure(403, message, detailsOf(names, name));
}

export function notFoundError(resource: Names, name: string): StatusError {
  const message = `${groupResourceOf(resource)} ${goQuote(name)} not found`;
  return failure(404, message, detailsOf(resource, name));
}

/** The path does not exist in a built-in group. */
export function noSuchPath(): StatusError {
  return failure(404, 'the server could not find the requested resource', {});
}

/** Like `methodNotAllowed`, for a custom resource, which the message names. */
export function verbNotSupported(resource: Names, verb: string): StatusError {
  const kind = goQuote(groupResourceOf(resource));
  const message = `${verb} is not supported on resources of kind ${kind}`;
  return failure(405, message, detailsOf(resource, ''));
}

/** The path does not support the verb. */
export function methodNotAllowed(
  message: string = 'the server does not allow this method on the requested resource',
): StatusError {
  return failure(405, message, {});
}

export function notAcceptable(supported: readonly string[]): StatusError {
  const message = `only the following media types are accepted: ${supported.join(', ')}`;
  return failure(406, message);
}

/** The form of a list was requested of a single object, or the other way round. */
export function wrongMetadataForm(
  { group, kind, listKind, custom }: ResourceDefinition,
  isList: boolean,
): StatusError {
  const type = `${group.split('.')[0] || 'core'}.${isList ? listKind : kind}`;
  // As upstream, whose custom resources have the methods of lists.
  if (custom && !isList)
    return StatusError.failure({ code: 500, message: 'content is not a list' });
  const shown = custom ? 'unstructured.UnstructuredList' : type;
  const message = isList
    ? `you requested PartialObjectMetadata, but the requested object is a list (*${shown})`
    : `you requested PartialObjectMetadataList, but the requested object is not a list (*${shown})`;
  return failure(406, message);
}

/** The router of a kube-apiserver finds no route that produces a media type of the `Accept` header. */
export function noRepresentation(available: readonly string[]): StatusError {
  const message = `406: Not Acceptable\n\nAvailable representations: ${available.join(', ')}`;
  return failure(406, message, {});
}

/** The router of a kube-apiserver finds no route that consumes the media type of the body. */
export function noConsumer(): StatusError {
  return failure(415, '415: Unsupported Media Type', {});
}

/** @param prefix start of the message */
export function alreadyExists(resource: Names, name: string, prefix: string = ''): StatusError {
  return StatusError.failure({
    code: 409,
    reason: 'AlreadyExists',
    message: `${prefix}${groupResourceOf(resource)} ${goQuote(name)} already exists`,
    details: detailsOf(resource, name),
  });
}

/** A precondition or the resourceVersion of an update does not match. */
export function conflict(
  resource: Names,
  name: string,
  why: string = 'the object has been modified; please apply your changes to the latest version and try again',
): StatusError {
  const what = `${groupResourceOf(resource)} ${goQuote(name)}`;
  const message = `Operation cannot be fulfilled on ${what}: ${why}`;
  return failure(409, message, detailsOf(resource, name));
}

/** An apply without `force` changes fields of other managers. */
export function applyConflict(message: string, causes: StatusCause[]): StatusError {
  return failure(409, message, { causes });
}

/** A resourceVersion or continue token is older than the history. */
export function expired(message: string): StatusError {
  return failure(410, message);
}

/** The server has not reached the resourceVersion that the client has already seen. */
export function tooLargeResourceVersion(asked: number, current: number): StatusError {
  const reason = 'Too large resource version';
  return failure(504, `Timeout: ${reason}: ${asked}, current: ${current}`, {
    causes: [{ reason: 'ResourceVersionTooLarge', message: reason }],
    retryAfterSeconds: 1,
  });
}

export function tooLarge(why: string): StatusError {
  return failure(413, `Request entity too large: ${why}`);
}

export function unsupportedMediaType(supported: readonly string[]): StatusError {
  const message = `the body of the request was in an unknown format - accepted media types include: ${supported.join(', ')}`;
  return failure(415, message);
}

export function invalidError(
  { group, kind }: Kind,
  name: string,
  errors: readonly FieldError[],
): StatusError {
  return new StatusError(invalidStatus({ group, kind, name }, errors));
}

/** A patch does not fit the object. As upstream, the message has no details. */
export function unprocessable(): StatusError {
  return failure(422, 'the server rejected our request due to an error in our request', {});
}

/** An internal error; the client gets only `message`. */
export function internalError(message: string): StatusError {
  return failure(500, `Internal error occurred: ${message}`, { causes: [{ message }] });
}

/** Returns the failure of an injected fault, with the message of kube-apiserver. */
export function faultStatus(code: number, retryAfterSeconds?: number): StatusError {
  const details = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
  const message = FAULTS.get(code);
  if (message !== undefined) return failure(code, message, details);
  const other = `the server responded with the status code ${code}`;
  return StatusError.failure({ code, message: other, details });
}

const FAULTS: ReadonlyMap<number, string> = new Map([
  [400, 'the server rejected our request for an unknown reason'],
  [401, 'Unauthorized'],
  [403, 'forbidden: User "system:anonymous" cannot do this'],
  [404, 'the server could not find the requested resource'],
  [409, 'the server reported a conflict'],
  [410, 'The resourceVersion for the provided watch is too old.'],
  [422, 'the server rejected our request due to an error in our request'],
  [429, 'Too many requests, please try again later.'],
  [500, 'Internal error occurred: fault injected'],
  [503, 'the server is currently unable to handle the request'],
  [
    504,
    'the server was unable to return a response in the time allotted, but may still be processing the request',
  ],
]);

function detailsOf({ group, plural }: Names, name: string): StatusDetails {
  return { ...(name && { name }), ...(group && { group }), kind: plural };
}
