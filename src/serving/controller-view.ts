import type { FieldPath } from '../api/field-path.ts';
import type { ObjectKey } from '../api/object-key.ts';
import type { KubernetesObject } from '../api/object.ts';
import type { Resource } from '../api/resource.ts';
import type { Lister } from '../cache/lister.ts';
import type { Clock } from '../util/clock.ts';
import type { Cause } from '../workqueue/queue-item.ts';
import type { WorkQueue } from '../workqueue/work-queue.ts';

/** Controller as shown on its debug pages. */
export interface ControllerView {
  readonly name: string;
  readonly queue: Pick<WorkQueue<ObjectKey>, 'snapshot'>;
  readonly hotLoops: readonly HotLoopView[];
  /** Name of the informer of the reconciled kind, as on `/debug/object`. */
  readonly reconciled?: string | undefined;
  /**
   * The informers of the controller, among them that of the reconciled kind.
   * @default the conditions of objects are not shown
   */
  readonly informers?: readonly {
    readonly name: string;
    readonly resource: Resource;
    readonly lister: Pick<Lister<KubernetesObject>, 'list' | 'get'>;
  }[];
}

/** Hot loop as shown on the debug pages. */
export interface HotLoopView {
  readonly key: ObjectKey;
  readonly kind: string;
  /** Object whose fields change: the object of the key, or another such as an owned object. */
  readonly resource: Resource;
  readonly namespace: string | undefined;
  readonly name: string;
  /** Some of the changing fields. */
  readonly paths: readonly FieldPath[];
  /** Number of changes at the time of detection, within `withinMs` milliseconds. */
  readonly times: number;
  readonly withinMs: number;
  /** Field manager of the key, if its writes specify one. */
  readonly fieldManager: string | undefined;
}

/** History of one key. */
export interface KeyHistoryView {
  readonly controller: string;
  readonly key: ObjectKey;
  /** Number of syncs since the key was first remembered. */
  readonly syncs: number;
  readonly failures: number;
  /** Total duration of the key's syncs, in milliseconds. */
  readonly busyMs: number;
  /** Start of the first of the failures that no success has followed, RFC 3339. */
  readonly failingSince?: string | undefined;
  /** The last syncs, oldest first. The last one may be running. */
  readonly last: readonly SyncView[];
}

/** One sync in the history of a key. */
export interface SyncView {
  readonly reconcileID: string;
  /** RFC 3339. */
  readonly startedAt: string;
  readonly causes: readonly Cause[];
  readonly omittedCauses: number;
  readonly attempt: number;
  /** Milliseconds for which the key was delayed, and for which it waited for a worker. */
  readonly delayedMs: number;
  readonly queuedMs: number;
  readonly postponed: readonly {
    readonly reason: string;
    readonly times: number;
    readonly ms: number;
  }[];
  readonly calls: readonly CallView[];
  readonly omittedCalls: number;
  /** Absent while the sync is running. */
  readonly end?: {
    readonly tookMs: number;
    readonly result: string;
    readonly error?: string;
    readonly requeueAfterMs?: number | undefined;
    readonly reason?: string | undefined;
  };
}

/** Call of a sync: of the API server, or of a service by `callService`. */
export interface CallView {
  /** A method in capitals, for a service. */
  readonly verb: string;
  /** Empty for a service. */
  readonly resource: string;
  /** Key of the object, namespace, or path; or the origin of the URL of the service. */
  readonly at: string;
  /** HTTP status and kind of the error; absent if the API call succeeded. Services always have their status. */
  readonly code?: number;
  readonly error?: string;
  /** Milliseconds from the start of the sync until the call. */
  readonly afterMs: number;
  readonly ms: number;
}

/** Lease of the leader or of the shard of a key. */
export interface KeyOwner {
  /** `namespace/name` */
  readonly lease: string;
  /** Empty if the Lease has no holder. */
  readonly holder: string;
  readonly isThisProcess: boolean;
}

/** Dependencies of {@link queuePages}. */
export interface QueuePagesDeps {
  /** Returns the controllers. Called for each request, so controllers may be added later. */
  readonly controllers: () => readonly ControllerView[];
  /** Sync history that the controllers share. */
  readonly history: {
    all(): readonly KeyHistoryView[];
    of(controller: string, key: string): KeyHistoryView | undefined;
    /** Returns the numbers of syncs and failures since the start. */
    totals(controller: string): {
      readonly syncs: number;
      readonly failures: number;
      readonly lastFailure?: { readonly key: string; readonly at: string };
    };
  };
  readonly clock: Pick<Clock, 'now'>;
  /**
   * Returns the Lease whose holder syncs a key, as this process last observed it.
   * @default this process syncs all keys
   */
  readonly owner?: ((key: ObjectKey) => KeyOwner | undefined) | undefined;
  /**
   * Masks credentials in strings, because the pages show error messages.
   * @default nothing is masked
   */
  readonly redact?: ((text: string) => string) | undefined;
}
