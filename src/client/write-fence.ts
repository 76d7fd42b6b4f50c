import { ApiError } from '../api/api-error.ts';
import type { HttpHandler, HttpRequest } from '../util/http.ts';

/** The `cause` of the {@link ApiError} of a write that the fence rejected. */
class WriteFencedError extends Error {
  override readonly name = 'WriteFencedError';
}

/** Paths of Events. */
const EVENTS = /^\/(?:api\/v1|apis\/events\.k8s\.io\/v1)\/namespaces\/[^/]+\/events(?:[/?]|$)/;

/**
 * Rejects writes while this process must not write, for example after it lost its lease. Reads always pass.
 * Until `guardedBy` is called, all writes are rejected.
 *
 * The check takes place immediately before the request is sent. So it also covers writes that waited for a
 * rate limit, credentials, a connection or a retry, and a process that was suspended meanwhile. If the process
 * is suspended between check and system call, this one request is sent when it resumes; preconditions protect
 * against that. Requests that a standby needs (leases, token reviews) use a client without a fence.
 */
export class WriteFence {
  #mayWrite: () => boolean = () => false;
  #mayWriteEvents: () => boolean = () => false;

  /**
   * Sets the check of every write. It must be fast and must not throw.
   *
   * @param mayWriteEvents the check of writes of Events, in which a former leader may report its work
   */
  guardedBy(mayWrite: () => boolean, mayWriteEvents: () => boolean = mayWrite): void {
    this.#mayWrite = mayWrite;
    this.#mayWriteEvents = mayWriteEvents;
  }

  /** Returns a handler that passes requests to `handler`, except writes that the fence rejects. */
  wrap(handler: HttpHandler): HttpHandler {
    return async (request) => {
      if (request.method === 'GET') return handler(request);
      const isEvent = EVENTS.test(request.path);
      const beforeSend = () => {
        request.beforeSend?.();
        if (!(isEvent ? this.#mayWriteEvents() : this.#mayWrite())) throw notSent(request);
      };
      beforeSend();
      return handler({ ...request, beforeSend });
    };
  }
}

function notSent({ method, path }: HttpRequest): ApiError {
  return new ApiError({
    kind: 'unavailable',
    message: `Not sent: ${method} ${path}: this process is not the leader, or did not renew its lease in time.`,
    cause: new WriteFencedError('the write fence rejects writes'),
  });
}

/** Reports whether `error` is that of a write that the fence rejected; the write was not sent. */
export function isWriteFenced(error: unknown): boolean {
  return error instanceof ApiError && error.cause instanceof WriteFencedError;
}
