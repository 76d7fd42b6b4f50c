import type {
  ApplyConfiguration,
  ChangedObject,
  NewObject,
  KubernetesObject,
  MergePatch,
  ObjectList,
  StrategicMergePatch,
  WatchEvent,
} from '../api/object.ts';
import type { LabelSelector } from '../api/label-selector.ts';
import type { ObjectName } from '../api/object-key.ts';
import type { Resource } from '../api/resource.ts';
import type { ServerReachability } from './server-reachability.ts';
import type { CallTrace, ConnectionActivity } from '../util/http.ts';

/**
 * The Kubernetes API as an interface. `HttpClient` implements it.
 *
 * A failed call rejects with an `ApiError`. If `signal` aborts first, it rejects with the signal's reason. A
 * request that could address more than one object (an empty name, a missing namespace) is a `TypeError` and
 * is not sent. Returned objects belong to the caller.
 */
export interface Client {
  /**
   * True if every write is a server-side dry run, which the server validates and does not store.
   * @default false
   */
  readonly isDryRun?: boolean;

  /**
   * Reports successful requests to the server, so that informers that wait for its return list at once.
   * @default informers wait for the whole backoff
   */
  readonly reachability?: ServerReachability | undefined;

  /** Reads an object. @throws {ApiError} of kind notFound if it does not exist */
  get<T extends KubernetesObject>(
    resource: Resource<T>,
    at: ObjectName,
    options?: GetOptions,
  ): Promise<T>;

  /** Returns one page; its `continueToken` requests the next one. */
  list<T extends KubernetesObject>(
    resource: Resource<T>,
    options?: ListOptions,
  ): Promise<ObjectList<T>>;

  /**
   * Opens a watch; resolves when the server has accepted it. The stream can be iterated once. It ends when
   * the server ends the watch or `signal` aborts, and throws an `ApiError` when the connection fails.
   * Leaving the iteration closes the watch.
   */
  watch<T extends KubernetesObject>(
    resource: Resource<T>,
    options?: WatchOptions,
  ): Promise<WatchStream<T>>;

  /** Creates an object. @throws {ApiError} of kind alreadyExists if the name is taken */
  create<T extends KubernetesObject>(
    resource: Resource<T>,
    object: NewObject<T>,
    options?: WriteOptions,
  ): Promise<T>;

  /** Replaces the object; rejects with a `conflict` if `metadata.resourceVersion` is not current. */
  update<T extends KubernetesObject>(
    resource: Resource<T>,
    object: ChangedObject<T>,
    options?: WriteOptions & { readonly subresource?: string | undefined },
  ): Promise<T>;

  /**
   * Patches an object or a subresource. For a subresource with a kind of its own, such as `scale`, call
   * `client.patch<KubernetesObject>`, whose patch can have any field.
   */
  patch<T extends KubernetesObject>(
    resource: Resource<T>,
    at: ObjectName,
    patch: Patch<NoInfer<T>>,
    options?: WriteOptions & { readonly subresource?: string | undefined },
  ): Promise<T>;

  /** Resolves when the server has accepted the deletion; finalizers may keep the object for longer. */
  delete(resource: Resource, at: ObjectName, options?: DeleteOptions): Promise<void>;

  /** Sends a request to any path of the server (`/version`, discovery); returns the parsed JSON response. */
  raw(request: RawRequest): Promise<unknown>;
}

/** Options of every request. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /**
   * Records the requests of the call. Clients of syncs set it if tracing is enabled.
   * @default none
   */
  readonly trace?: CallTrace | undefined;
}

/** Options of `Client.get`. */
export interface GetOptions extends CallOptions {
  /** `"0"` accepts any cached state. Absent: the most recent state. */
  readonly resourceVersion?: string | undefined;
}

/** Selects objects of a list or watch. */
export interface Selection {
  /** Absent: all namespaces. */
  readonly namespace?: string | undefined;
  /** `app=web,tier!=db`, or `{ matchLabels, matchExpressions }` as in objects. Absent or empty: all labels. */
  readonly labelSelector?: string | LabelSelector | undefined;
  /** `metadata.name=web` */
  readonly fieldSelector?: string | undefined;
}

/** Restricts a list or watch to a range of hashes, on servers that support it (KEP-5866, alpha). */
export interface ShardSelection {
  /** `shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')` */
  readonly shardSelector?: string | undefined;
}

/** Options of `Client.list`. */
export interface ListOptions extends CallOptions, Selection, ShardSelection {
  readonly resourceVersion?: string | undefined;
  readonly resourceVersionMatch?: 'NotOlderThan' | 'Exact' | undefined;
  /** Maximum number of objects in a page; absent or 0: all objects. */
  readonly limit?: number | undefined;
  readonly continueToken?: string | undefined;
  /** Requests `PartialObjectMetadata` instead of complete objects. */
  readonly metadataOnly?: boolean | undefined;
}

/** Options of `Client.watch`. */
export interface WatchOptions extends CallOptions, Selection, ShardSelection {
  /** Version after which the watch starts; absent: the current state is sent first, as `added` events. */
  readonly resourceVersion?: string | undefined;
  readonly resourceVersionMatch?: 'NotOlderThan' | undefined;
  /** Sends the current state first and a bookmark after it (WatchList, KEP-3157). */
  readonly sendInitialEvents?: boolean | undefined;
  readonly allowWatchBookmarks?: boolean | undefined;
  /** Time after which the server ends the watch. */
  readonly timeoutSeconds?: number | undefined;
  readonly metadataOnly?: boolean | undefined;
}

/** The events of a watch, in order. */
export interface WatchStream<T extends KubernetesObject> extends AsyncIterable<WatchEvent<T>> {
  /** `Clock.monotonic()` when bytes last arrived, also if they were only part of an event. */
  readonly lastByteMs: number;
  /**
   * Returns the same events in batches of those that arrived together, which saves a promise for each event.
   * Iterate either this or the stream. Absent: the stream has no batches.
   */
  batches?(): AsyncIterable<readonly WatchEvent<T>[]>;
  /**
   * The activity of the watch's connection, if that has health checks: a connection that does not answer
   * pings ends the watch. Absent: only the events of the watch show that the connection works.
   */
  readonly activity?: ConnectionActivity | undefined;
}

/** Options of every write. */
export interface WriteOptions extends CallOptions {
  /** Name of the writer in `metadata.managedFields`. Required by `apply`. */
  readonly fieldManager?: string | undefined;
  readonly dryRun?: boolean | undefined;
  readonly fieldValidation?: 'Ignore' | 'Warn' | 'Strict' | undefined;
}

/** A change to a stored object. The body has fields of the kind `T`. */
export type Patch<T extends KubernetesObject = KubernetesObject> =
  /** JSON merge patch, RFC 7386. */
  | { readonly type: 'merge'; readonly body: MergePatch<T> }
  /** JSON patch, RFC 6902. */
  | { readonly type: 'json'; readonly body: readonly JsonPatchOperation[] }
  /** Strategic merge patch; built-in kinds only. */
  | { readonly type: 'strategic'; readonly body: StrategicMergePatch<T> }
  /** Server-side apply; `force` takes over the fields of other managers. */
  | {
      readonly type: 'apply';
      readonly body: ApplyConfiguration<T>;
      readonly force?: boolean;
    };

/** An operation of a JSON patch (RFC 6902). */
export interface JsonPatchOperation {
  readonly op: 'add' | 'remove' | 'replace' | 'move' | 'copy' | 'test';
  readonly path: string;
  readonly from?: string;
  readonly value?: unknown;
}

/** Options of `Client.delete`. */
export interface DeleteOptions extends CallOptions {
  /** Precondition: the UID of the object. A later object of the same name is not deleted. */
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly propagationPolicy?: 'Orphan' | 'Background' | 'Foreground' | undefined;
  readonly gracePeriodSeconds?: number | undefined;
  readonly dryRun?: boolean | undefined;
}

export interface RawRequest extends CallOptions {
  readonly method?: 'GET' | 'POST' | undefined;
  readonly path: string;
  readonly accept?: string | undefined;
  readonly body?: unknown;
}
