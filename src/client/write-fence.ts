import { ApiError } from '../api/api-error.ts';
import type { HttpHandler, HttpRequest } from '../util/http.ts';

/** Why a write was not sent; the `cause` of the `ApiError` its caller gets. */
export class WriteFencedError extends Error {
  override readonly name = 'WriteFencedError';
}

/**
 * Lets reads through, and writes only while its guard says so; none before it has one. It stands
 * where requests leave, not where they are asked for: a write that waited for the rate limit, for
 * credentials, for a connection, to be repeated, or in a process that was stopped and continued, is
 * judged at the moment it would be sent. Between that and the system call nothing waits; a process that
 * is stopped right there sends this one request when it is continued, and it is what preconditions are
 * for. What must pass (a lease, a token review) goes through a client of its own, without a fence.
 */
export class WriteFence {
  #mayWrite: () => boolean = () => false;

  /** From now on `mayWrite` is asked for every write. It must be quick and must not throw. */
  guardedBy(mayWrite: () => boolean): void {
    this.#mayWrite = mayWrite;
  }

  /** `handler`, behind the fence. */
  around(handler: HttpHandler): HttpHandler {
    return async (request) => {
      if (request.method === 'GET') return handler(request);
      const beforeSend = () => {
        request.beforeSend?.();
        if (!this.#mayWrite()) throw notSent(request);
      };
      beforeSend();
      return handler({ ...request, beforeSend });
    };
  }
}

function notSent({ method, path }: HttpRequest): ApiError {
  return new ApiError({
    kind: 'unavailable',
    message: `Not sent: ${method} ${path}: this process is not the leader, or has not renewed its lease in time.`,
    cause: new WriteFencedError('the write fence is down'),
  });
}

/** True if `error` is a write that the fence stopped: it was not sent. */
export function isWriteFenced(error: unknown): boolean {
  return error instanceof ApiError && error.cause instanceof WriteFencedError;
}
