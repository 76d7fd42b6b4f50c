import type { Resource } from '../api/resource.ts';
import { groupResourceOf } from '../api/resource.ts';
import type { ResourceDefinition } from './resource-definition.ts';
import type { Action } from './policy-rule.ts';
import type { User } from './user.ts';
import type { Status, StatusCause, StatusDetails } from '../api/status.ts';
import { goQuote } from '../util/go-quote.ts';
import type { FieldError } from '../api/field-error.ts';
import { invalidStatus } from '../api/field-error.ts';

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

  static of(status: Status): StatusError {
    return new StatusError(status);
  }

  static failure({ code, message, reason, details }: Failure): StatusError {
    return new StatusError({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message,
      ...(reason === undefined ? {} : { reason }),
      ...(details === undefined ? {} : { details }),
      code,
    });
  }
}

export function badRequest(message: string): StatusError {
  return StatusError.failure({ code: 400, reason: 'BadRequest', message });
}

export function unauthorized(): StatusError {
  return StatusError.failure({ code: 401, reason: 'Unauthorized', message: 'Unauthorized' });
}

export function forbidden(
  resource: Names,
  name: string,
  why: string,
  causes?: StatusCause[],
): StatusError {
  return StatusError.failure({
    code: 403,
    reason: 'Forbidden',
    message: `${groupResourceOf(resource)}${name && ` ${goQuote(name)}`} is forbidden: ${why}`,
    details: { ...detailsOf(resource, name), ...(causes && { causes }) },
  });
}

/** The user is not allowed to do the action. `reason` is the one of the authorizer, if it has one. */
export function accessDenied({ name: user }: User, action: Action, reason: string): StatusError {
  const failure = { code: 403, reason: 'Forbidden' };
  const why = reason && `: ${reason}`;
  const { kind, verb } = action;
  if (kind === 'path') {
    const message = `forbidden: User ${goQuote(user)} cannot ${verb} path ${goQuote(action.path)}${why}`;
    return StatusError.failure({ ...failure, message, details: {} });
  }
  const { group, resource, subresource, namespace, name } = action;
  const names = { group, plural: resource };
  const what = name ? `${groupResourceOf(names)} ${goQuote(name)}` : groupResourceOf(names);
  const full = subresource ? `${resource}/${subresource}` : resource;
  const where = namespace ? `in the namespace ${goQuote(namespace)}` : 'at the cluster scope';
  return StatusError.failure({
    ...failure,
    message: `${what} is forbidden: User ${goQuote(user)} cannot ${verb} resource ${goQuote(full)} in API group ${goQuote(group)} ${where}${why}`,
    details: detailsOf(names, name),
  });
}

export function notFound(resource: Names, name: string): StatusError {
  return StatusError.failure({
    code: 404,
    reason: 'NotFound',
    message: `${groupResourceOf(resource)} ${goQuote(name)} not found`,
    details: detailsOf(resource, name),
  });
}

/** The path does not exist in a built-in group. */
export function noSuchPath(): StatusError {
  return StatusError.failure({
    code: 404,
    reason: 'NotFound',
    message: 'the server could not find the requested resource',
    details: {},
  });
}

/** Like `methodNotAllowed`, for a custom resource, which the message names. */
export function verbNotSupported(resource: Names, verb: string): StatusError {
  return StatusError.failure({
    code: 405,
    reason: 'MethodNotAllowed',
    message: `${verb} is not supported on resources of kind ${goQuote(groupResourceOf(resource))}`,
    details: detailsOf(resource, ''),
  });
}

/** The path does not support the verb. */
export function methodNotAllowed(
  message: string = 'the server does not allow this method on the requested resource',
): StatusError {
  return StatusError.failure({ code: 405, reason: 'MethodNotAllowed', message, details: {} });
}

export function notAcceptable(supported: readonly string[]): StatusError {
  return StatusError.failure({
    code: 406,
    reason: 'NotAcceptable',
    message: `only the following media types are accepted: ${supported.join(', ')}`,
  });
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
  const [form, is] = isList ? ['', 'is a list'] : ['List', 'is not a list'];
  return StatusError.failure({
    code: 406,
    reason: 'NotAcceptable',
    message: `you requested PartialObjectMetadata${form}, but the requested object ${is} (*${shown})`,
  });
}

/** The router of a kube-apiserver finds no route that produces a media type of the `Accept` header. */
export function noRepresentation(available: readonly string[]): StatusError {
  return StatusError.failure({
    code: 406,
    reason: 'NotAcceptable',
    message: `406: Not Acceptable\n\nAvailable representations: ${available.join(', ')}`,
    details: {},
  });
}

/** The router of a kube-apiserver finds no route that consumes the media type of the body. */
export function noConsumer(): StatusError {
  return StatusError.failure({
    code: 415,
    reason: 'UnsupportedMediaType',
    message: '415: Unsupported Media Type',
    details: {},
  });
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
  return StatusError.failure({
    code: 409,
    reason: 'Conflict',
    message: `Operation cannot be fulfilled on ${groupResourceOf(resource)} ${goQuote(name)}: ${why}`,
    details: detailsOf(resource, name),
  });
}

/** An apply without `force` changes fields of other managers. */
export function applyConflict(message: string, causes: StatusCause[]): StatusError {
  return StatusError.failure({ code: 409, reason: 'Conflict', message, details: { causes } });
}

/** A resourceVersion or continue token is older than the history. */
export function expired(message: string): StatusError {
  return StatusError.failure({ code: 410, reason: 'Expired', message });
}

export function tooLarge(why: string): StatusError {
  return StatusError.failure({
    code: 413,
    reason: 'RequestEntityTooLarge',
    message: `Request entity too large: ${why}`,
  });
}

export function unsupportedMediaType(supported: readonly string[]): StatusError {
  return StatusError.failure({
    code: 415,
    reason: 'UnsupportedMediaType',
    message: `the body of the request was in an unknown format - accepted media types include: ${supported.join(', ')}`,
  });
}

export function invalid(
  { group, kind }: Kind,
  name: string,
  errors: readonly FieldError[],
): StatusError {
  return StatusError.of(invalidStatus({ group, kind, name }, errors));
}

/** A patch does not fit the object. As upstream, the message has no details. */
export function unprocessable(): StatusError {
  return StatusError.failure({
    code: 422,
    reason: 'Invalid',
    message: 'the server rejected our request due to an error in our request',
    details: {},
  });
}

/** An internal error; the client gets only `message`. */
export function internalError(message: string): StatusError {
  return StatusError.failure({
    code: 500,
    reason: 'InternalError',
    message: `Internal error occurred: ${message}`,
    details: { causes: [{ message }] },
  });
}

/** Returns the failure of an injected fault, with the message of kube-apiserver. */
export function faultStatus(code: number, retryAfterSeconds?: number): StatusError {
  const [reason, message] = FAULTS.get(code) ?? [
    undefined,
    `the server responded with the status code ${code}`,
  ];
  return StatusError.failure({
    code,
    message,
    ...(reason && { reason }),
    details: retryAfterSeconds === undefined ? {} : { retryAfterSeconds },
  });
}

const FAULTS: ReadonlyMap<number, readonly [reason: string, message: string]> = new Map([
  [400, ['BadRequest', 'the server rejected our request for an unknown reason']],
  [401, ['Unauthorized', 'Unauthorized']],
  [403, ['Forbidden', 'forbidden: User "system:anonymous" cannot do this']],
  [404, ['NotFound', 'the server could not find the requested resource']],
  [409, ['Conflict', 'the server reported a conflict']],
  [410, ['Expired', 'The resourceVersion for the provided watch is too old.']],
  [422, ['Invalid', 'the server rejected our request due to an error in our request']],
  [429, ['TooManyRequests', 'Too many requests, please try again later.']],
  [500, ['InternalError', 'Internal error occurred: fault injected']],
  [503, ['ServiceUnavailable', 'the server is currently unable to handle the request']],
  [
    504,
    [
      'Timeout',
      'the server was unable to return a response in the time allotted, but may still be processing the request',
    ],
  ],
]);

/** The server has not reached the resourceVersion that the client has already seen. */
export function tooLargeResourceVersion(asked: number, current: number): StatusError {
  return StatusError.failure({
    code: 504,
    reason: 'Timeout',
    message: `Timeout: Too large resource version: ${asked}, current: ${current}`,
    details: {
      causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
      retryAfterSeconds: 1,
    },
  });
}

function detailsOf({ group, plural }: Names, name: string): StatusDetails {
  return { ...(name && { name }), ...(group && { group }), kind: plural };
}
