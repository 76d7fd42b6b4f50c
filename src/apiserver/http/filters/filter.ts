import type { User } from '../../../api/user.ts';
import type { AuditExchange } from '../../audit/audit.ts';
import type { RequestRecord } from '../../audit/request-log.ts';
import type { RequestNotes } from '../../request/received-request.ts';
import type { IncomingRequest } from '../../request/request-body.ts';
import type { Target } from '../../request/request-info.ts';
import type { ServedResponse } from '../response.ts';

/** A request on its way through the filters. */
export interface FilteredRequest {
  /** The request; with its body once it was received. */
  readonly request: IncomingRequest;
  /** The parsed path; an empty one if it is malformed. */
  readonly target: Target;
  /** The record in the log of requests, with the resource of the path. */
  readonly record: RequestRecord;
  /** Whether the request needs credentials. */
  readonly authenticate: boolean;
  readonly notes: RequestNotes;
  /** Undefined if nothing is recorded. */
  readonly audit: AuditExchange | undefined;
  /** An injected fault, or the 400 for a malformed path, which fails the request instead of its handling. */
  readonly fault: Error | undefined;
  /** The user for whom the request is served. The anonymous user before the authentication. */
  readonly user: User;
  readonly end: ResponseEnd;
}

/** Calls the filters that follow, and the handler of resources. */
export type Next = (request: FilteredRequest) => Promise<ServedResponse>;

/** Handles a request, or passes it on, possibly changed. Upstream: the handlers of `DefaultBuildHandlerChain`. */
export type Filter = (request: FilteredRequest, next: Next) => Promise<ServedResponse>;

/** Returns the filters as one function. The first one is the outermost. */
export function chain(filters: readonly Filter[]): Next {
  return filters.reduceRight<Next>(
    (next, filter) => (request) => filter(request, next),
    ({ record }) => Promise.reject(new Error(`no filter answered ${record.path}`)),
  );
}

/** The end of a response: at once, or when its watch ends. */
export class ResponseEnd {
  #isOpen = false;
  readonly #callbacks: (() => void)[] = [];

  /** The response is a watch. Returns the function to call when it ends. */
  startWatch(): () => void {
    this.#isOpen = true;
    return () => {
      this.#isOpen = false;
      for (const callback of this.#callbacks.splice(0)) callback();
    };
  }

  /** Calls `callback` at once, or when the watch ends. */
  whenEnded(callback: () => void): void {
    if (this.#isOpen) this.#callbacks.push(callback);
    else callback();
  }
}
