import { statusDetails } from './status.ts';
import type { Status, StatusDetails } from './status.ts';

/**
 * What went wrong, as far as a caller can act on it.
 *
 * `unreachable`: no answer was had (refused, reset, name not found, TLS). The request may still
 * have been carried out unless `cause` says that it was never sent.
 * `malformed`: there was an answer, but not one of a Kubernetes API server.
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

/** From `Status.reason` (metav1.StatusReason) to kind. */
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

/** From HTTP status to kind, where the body gave no reason. */
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
  /** HTTP status; 0 if there was no answer. */
  readonly code?: number;
  /** `Status.reason`, if the server gave one. */
  readonly reason?: string | undefined;
  readonly details?: StatusDetails | undefined;
  /** How long the server asks to wait, from `Retry-After` or the Status, in milliseconds. */
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

/** A request that did not succeed. Callers match on `kind`, people read `message`. */
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
   * The error a `Status` body, or an ERROR event of a watch, stands for. What in it is not of the
   * form of a Status counts as absent: it comes from the network.
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

  /** True if the error, or any cause in its details, has this cause reason. */
  hasCause(reason: string): boolean {
    return this.details?.causes?.some((cause) => cause.reason === reason) ?? false;
  }
}

/** The kind of an HTTP status that came without a usable body. */
export function kindOfCode(code: number): ApiErrorKind {
  return KIND_BY_CODE.get(code) ?? (code >= 500 ? 'internal' : 'unknown');
}

/** True if `error` is an ApiError of one of `kinds`. */
export function isApiError(error: unknown, ...kinds: readonly ApiErrorKind[]): error is ApiError {
  return error instanceof ApiError && (kinds.length === 0 || kinds.includes(error.kind));
}

/**
 * True if `error`, or an error that caused it, is the answer that an object is invalid. Schemas answer
 * so, and by default ValidatingAdmissionPolicies: what is invalid now may be valid under other rules.
 */
export function isCausedByInvalid(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (isApiError(cause, 'invalid')) return true;
  }
  return false;
}

/** The resourceVersion asked for is no longer, or was never, in the server's history. */
export function isExpired(error: unknown): error is ApiError {
  return isApiError(error, 'expired', 'gone');
}

/** Nothing can be created in a namespace that is going away, with all that is in it. */
export function isNamespaceTerminating(error: unknown): error is ApiError {
  return isApiError(error, 'forbidden') && error.hasCause('NamespaceTerminating');
}

/** The server has not yet reached the resourceVersion asked for (etcd restored, or a stale cache). */
export function isTooLargeResourceVersion(error: unknown): error is ApiError {
  if (!(error instanceof ApiError)) return false;
  if (error.hasCause('ResourceVersionTooLarge')) return true;
  // Servers before 1.20 say so only in words.
  const tooLarge = 'Too large resource version';
  return (
    error.kind === 'timeout' &&
    (error.message === tooLarge ||
      (error.details?.causes?.some((cause) => cause.message === tooLarge) ?? false))
  );
}
