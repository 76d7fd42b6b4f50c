import type { ShownEvent } from '../object-page.ts';

/** Response of `/debug/cluster`. */
export interface ClusterReport {
  readonly url: string;
  /** Number of the last write. */
  readonly revision: number;
  readonly watches: number;
  /** Number of requests for resources since the start. */
  readonly requests: number;
  readonly objects: readonly { readonly resource: string; readonly count: number }[];
  /** The last requests, newest first. */
  readonly recent: readonly ShownRequest[];
  /** The last events, newest first. */
  readonly events: readonly ClusterEvent[];
  /** State of each fault switch by its path. */
  readonly faults: Readonly<Record<string, string>>;
}

/** Event as shown on the page. */
export interface ClusterEvent extends ShownEvent {
  readonly metadata: { readonly uid: string };
}

/** Request as shown on the page. */
export interface ShownRequest {
  readonly verb: string;
  readonly path: string;
  readonly user: string;
  readonly agent: string;
  /** Time at which it was received, RFC 3339. */
  readonly at: string;
  /** Absent before the response, and if the connection was broken. */
  readonly status?: number;
}
