import type { HttpRequest } from '../../util/http.ts';
import type { ResourceDefinition } from '../objects/resource-definition.ts';
import type { WriteTurns } from './write-turns.ts';
import type { RequestInfo } from './request-info.ts';

/** What a request reports besides its response. */
export interface RequestNotes {
  /** Texts of `Warning` headers. */
  readonly warnings: string[];
  /** Annotations of the audit event. */
  readonly annotations: Map<string, string>;
}

/** A request to a resource, with its body. */
export interface ReceivedRequest extends RequestNotes {
  readonly request: HttpRequest;
  readonly info: RequestInfo;
  readonly definition: ResourceDefinition;
  /** The turns of the server's large writes. */
  readonly turns: WriteTurns;
}
