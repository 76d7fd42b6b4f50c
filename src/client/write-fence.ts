import { ApiError } from '../api/api-error.ts';
import type { HttpHandler } from '../util/http.ts';

/** Why a write was not sent; the `cause` of the `ApiError` its caller gets. */
export class WriteFencedError extends Error {
  override readonly name = 'WriteFencedError';
}

/**
 * Lets reads through, and writes only while `mayWrite()` says so. It stands where requests leave, not
 * where they are asked for: a write that waited for the rate limit, for credentials or to be repeated
 * is judged at the moment it would be sent. What must pass (a lease, a token review) goes through
 * a client of its own, over the handler without fence.
 */
export function writeFence(handler: HttpHandler, mayWrite: () => boolean): HttpHandler {
  return async (request) => {
    if (request.method === 'GET' || mayWrite()) return handler(request);
    throw new ApiError({
      kind: 'unavailable',
      message: `Not sent: ${request.method} ${request.path}: this process may not write any more. Another one leads.`,
      cause: new WriteFencedError('the write fence is down'),
    });
  };
}

/** True if `error` is a write that the fence stopped: it was not sent. */
export function isWriteFenced(error: unknown): boolean {
  return error instanceof ApiError && error.cause instanceof WriteFencedError;
}
