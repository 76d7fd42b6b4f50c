import type { KubernetesObject } from '../api/object.ts';
import type { Cause } from '../workqueue/queue-item.ts';
import type { Outcome } from '../workqueue/outcome.ts';

/** Value of `format` in the header. */
export const RECORDING_FORMAT = 'crd-controller-recording';

/** Version of the format. A file of another version is refused. */
export const RECORDING_VERSION = 1;

/** The first line of a file. */
export interface Header {
  readonly kind: 'header';
  readonly format: typeof RECORDING_FORMAT;
  readonly version: typeof RECORDING_VERSION;
  /** Name and version of the recorded program. */
  readonly program: { readonly name: string; readonly version: string };
  /** Names of the controllers, as in `--controllers`. */
  readonly controllers: readonly string[];
  /** Namespaces of the caches; empty: all. */
  readonly namespaces: readonly string[];
  /** Wall-clock time at `ms` 0, in milliseconds since the epoch: the start of the program. */
  readonly startMs: number;
  /** Time since the start of the program, in milliseconds. No line of the file is older. A later file starts after 0. */
  readonly ms: number;
  /** Part of the hashes of redacted data, in hexadecimal. */
  readonly salt: string;
  /** Resources of which only metadata and a hash are recorded. */
  readonly redacted: readonly string[];
  /** Why `explore` recorded it. Such a recording is of several processes in virtual time, and is shown only. */
  readonly schedule?: ScheduleHeader | undefined;
}

/** A schedule that `explore` found. */
export interface ScheduleHeader {
  /** The rule that is violated. */
  readonly rule: string;
  readonly detail: string;
  /** Value of the option `replay`. */
  readonly replay: readonly string[];
}

/** A process of a schedule. */
interface OfProcess {
  readonly process?: string | undefined;
}

/** Declares a cache. */
export interface CacheLine extends OfProcess {
  readonly kind: 'cache';
  readonly ms: number;
  readonly id: number;
  /** `pods in default` */
  readonly name: string;
  readonly cluster?: string | undefined;
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  readonly metadataOnly: boolean;
}

/** A cache contains an object. */
export interface SetLine {
  readonly kind: 'set';
  readonly ms: number;
  readonly cache: number;
  readonly object: KubernetesObject;
}

/** A cache does not contain an object any more. */
export interface DropLine {
  readonly kind: 'drop';
  readonly ms: number;
  readonly cache: number;
  readonly object: Pick<KubernetesObject, 'apiVersion' | 'kind' | 'metadata'>;
}

/** A cache has its initial objects. */
export interface SyncedLine {
  readonly kind: 'synced';
  readonly ms: number;
  readonly cache: number;
}

/** A sync starts. */
export interface SyncLine extends OfProcess {
  readonly kind: 'sync';
  readonly ms: number;
  readonly sync: number;
  readonly controller: string;
  readonly key: string;
  /** Wall-clock time, in milliseconds since the epoch. */
  readonly atMs: number;
  readonly reconcileID: string;
  readonly attempt: number;
  readonly causes: readonly Cause[];
}

/** How a sync ended. */
export type Ending =
  | { readonly outcome: Outcome }
  | { readonly error: string }
  /** Its signal aborted. */
  | { readonly aborted: true };

/** A sync ends. */
export interface EndLine {
  readonly kind: 'end';
  readonly ms: number;
  readonly sync: number;
  readonly ending: Ending;
  /** Values of the wall clock that it read, since `atMs`. */
  readonly now: readonly number[];
  readonly random: readonly number[];
}

/** A request is sent. */
export interface RequestLine extends OfProcess {
  readonly kind: 'request';
  readonly ms: number;
  readonly request: number;
  /** Absent outside of syncs. */
  readonly sync?: number | undefined;
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
}

/** The end of a request. */
export interface ResponseLine {
  readonly kind: 'response';
  readonly ms: number;
  readonly request: number;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** A request without a response. */
export interface FailureLine {
  readonly kind: 'failure';
  readonly ms: number;
  readonly request: number;
  /** Kind of the `ApiError`. */
  readonly error: string;
  readonly message: string;
}

/** An event is recorded. */
export interface EventLine {
  readonly kind: 'event';
  readonly ms: number;
  readonly sync?: number | undefined;
  readonly event: EventSummary;
}

/** The part of an event that is compared. */
export interface EventSummary {
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  /** `Pod default/web-0` */
  readonly object: string;
  readonly action?: string | undefined;
}

/** The controllers start or stop. `lease`: because this process acquired or lost the Lease. */
export interface TermLine extends OfProcess {
  readonly kind: 'term';
  readonly ms: number;
  readonly state: 'started' | 'stopped';
  readonly lease: boolean;
}

/** The file has the objects of all caches. Syncs before are not compared. */
export interface CompleteLine {
  readonly kind: 'complete';
  readonly ms: number;
}

/** Lines are missing, because the disk was too slow or full. */
export interface GapLine {
  readonly kind: 'gap';
  readonly ms: number;
  readonly lines: number;
  readonly reason: string;
}

/** The server writes an object, in a schedule of `explore`. */
export interface ServerWriteLine {
  readonly kind: 'write';
  readonly ms: number;
  /** Who sent the request. */
  readonly process: string;
  /** `creates pods default/web-0` */
  readonly text: string;
  readonly object: KubernetesObject;
}

/** A fault strikes, or a user acts, in a schedule of `explore`. */
export interface StepLine {
  readonly kind: 'fault' | 'action';
  readonly ms: number;
  readonly text: string;
}

/** A line after the header. `ms` is the time since the start of the program. */
export type RecordingLine =
  | CacheLine
  | SetLine
  | DropLine
  | SyncedLine
  | SyncLine
  | EndLine
  | RequestLine
  | ResponseLine
  | FailureLine
  | EventLine
  | TermLine
  | CompleteLine
  | GapLine
  | ServerWriteLine
  | StepLine;
