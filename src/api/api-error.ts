import { statusDetails } from './status.ts';
import type { Status, StatusDetails } from './status.ts';

/**
 * The kind of a failed request, which callers handle.
 *
 * `unreachable`: there was no response (connection refused or reset, name not found, TLS). The server may
 * have processed the request unless `cause` states that it was not sent.
 * `malformed`: the response is not one of a Kubernetes API server.
 */
export type ApiErrorKind =
  | 'badRequest'
  | 'unauthorized'
  | 'forbidden'
  | 'notFound'
  | 'methodNotAllowed'
  | 'notAcceptable'
  | 'unsupportedMediaType'
  | 'alreadyExists'
  | 'conflict'
  | 'gone'
  | 'expired'
  | 'requestEntityTooLarge'
  | 'invalid'
  | 'tooManyRequests'
  | 'internal'
  | 'unavailable'
  | 'timeout'
  | 'unreachable'
  | 'malformed'
  | 'unknown';

/** Kinds by `Status.reason` (metav1.StatusReason). */
const KIND_BY_REASON: ReadonlyMap<string, ApiErrorKind> = new Map([
  ['BadRequest', 'badRequest'],
  ['Unauthorized', 'unauthorized'],
  ['Forbidden', 'forbidden'],
  ['NotFound', 'notFound'],
  ['MethodNotAllowed', 'methodNotAllowed'],
  ['NotAcceptable', 'notAcceptable'],
  ['UnsupportedMediaType', 'unsupportedMediaType'],
  ['AlreadyExists', 'alreadyExists'],
  ['Conflict', 'conflict'],
  ['Gone', 'gone'],
  ['Expired', 'expired'],
  ['RequestEntityTooLarge', 'requestEntityTooLarge'],
  ['Invalid', 'invalid'],
  ['TooManyRequests', 'tooManyRequests'],
  ['InternalError', 'internal'],
  ['ServiceUnavailable', 'unavailable'],
  ['Timeout', 'timeout'],
  ['ServerTimeout', 'timeout'],
]);

/** Kinds by HTTP status, for responses without a reason. */
const KIND_BY_CODE: ReadonlyMap<number, ApiErrorKind> = new Map([
  [400, 'badRequest'],
  [401, 'unauthorized'],
  [403, 'forbidden'],
  [404, 'notFound'],
  [405, 'methodNotAllowed'],
  [406, 'notAcceptable'],
  [409, 'conflict'],
  [410, 'gone'],
  [413, 'requestEntityTooLarge'],
  [415, 'unsupportedMediaType'],
  [422, 'invalid'],
  [429, 'tooManyRequests'],
  [500, 'internal'],
  [503, 'unavailable'],
  [504, 'timeout'],
]);

export interface ApiErrorInit {
  readonly kind: ApiErrorKind;
  readonly message: string;
  /** HTTP status, or 0 if there was no response. */
  readonly code?: number;
  /** `Status.reason`, if the response has one. */
  readonly reason?: string | undefined;
  readonly details?: StatusDetails | undefined;
  /** Retry delay from `Retry-After` or the Status, in milliseconds. */
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

/** A failed request. Programs check `kind`, not `message`. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly kind: ApiErrorKind;
  readonly code: number;
  readonly reason: string | undefined;
  readonly details: StatusDetails | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(init: ApiErrorInit) {
    super(init.message, init.cause === undefined ? undefined : { cause: init.cause });
    this.kind = init.kind;
    this.code = init.code ?? 0;
    this.reason = init.reason;
    this.details = init.details;
    this.retryAfterMs = init.retryAfterMs;
  }

  /**
   * Converts a `Status`, from a response body or an ERROR event of a watch. Members with an invalid type
   * count as absent, because the Status comes from the network.
   */
  static fromStatus(
    status: { readonly [K in keyof Status]?: unknown },
    code: number = typeof status.code === 'number' ? status.code : 0,
  ): ApiError {
    const reason = typeof status.reason === 'string' ? status.reason : undefined;
    const message = typeof status.message === 'string' ? status.message : undefined;
    const details = statusDetails(status.details);
    const seconds = details?.retryAfterSeconds;
    return new ApiError({
      kind: (reason && KIND_BY_REASON.get(reason)) || kindOfCode(code),
      message: message ?? reason ?? `HTTP status ${code}`,
      code,
      reason,
      details,
      retryAfterMs: seconds === undefined ? undefined : seconds * 1000,
    });
  }

  /** Reports whether the details contain a cause with this reason. */
  hasCause(reason: string): boolean {
    return this.details?.causes?.some((cause) => cause.reason === reason) ?? false;
  }
}

/** Returns the kind for an HTTP status without a usable body. */
export function kindOfCode(code: number): ApiErrorKind {
  return KIND_BY_CODE.get(code) ?? (code >= 500 ? 'internal' : 'unknown');
}

/** Reports whether `error` is an ApiError of one of `kinds`, or of any kind if none is given. */
export function isApiError(error: unknown, ...kinds: readonly ApiErrorKind[]): error is ApiError {
  return error instanceof ApiError && (kinds.length === 0 || kinds.includes(error.kind));
}

/**
 * Reports whether `error` or one of its causes has kind `invalid`. Schemas and, by default,
 * ValidatingAdmissionPolicies reject objects as invalid. The object may become valid when they change.
 */
export function isCausedByInvalid(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (isApiError(cause, 'invalid')) return true;
  }
  return false;
}

/** Reports whether the requested resourceVersion is not in the history of the server. */
export function isExpired(error: unknown): error is ApiError {
  return isApiError(error, 'expired', 'gone');
}

/** Reports whether an object could not be created because its namespace is being deleted. */
export function isNamespaceTerminating(error: unknown): error is ApiError {
  return isApiError(error, 'forbidden') && error.hasCause('NamespaceTerminating');
}

/** Reports whether the server has not reached the requested resourceVersion: etcd was restored, or its cache is stale. */
export function isTooLargeResourceVersion(error: unknown): error is ApiError {
  if (!(error instanceof ApiError)) return false;
  if (error.hasCause('ResourceVersionTooLarge')) return true;
  // Servers before 1.20 send only the message.
  const tooLarge = 'Too large resource version';
  return (
    error.kind === 'timeout' &&
    (error.message === tooLarge ||
      (error.details?.causes?.some((cause) => cause.message === tooLarge) ?? false))
  );
}
