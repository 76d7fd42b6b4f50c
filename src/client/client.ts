import type { Draft, KubernetesObject, ObjectList, WatchEvent } from '../api/object.ts';
import type { ObjectName } from '../api/object-key.ts';
import type { Resource } from '../api/resource.ts';
import type { ConnectionActivity } from '../util/http.ts';

/**
 * The Kubernetes API as the rest of the house sees it. Every call rejects with an `ApiError` when
 * it does not succeed, and with the signal's reason when `signal` aborts first; one that could mean
 * something else than an object (an empty name, no namespace) is a `TypeError` and is not sent.
 * Objects returned belong to the caller.
 */
export interface Client {
  /**
   * Writes are checked and answered by the server, and change nothing.
   * @default false
   */
  readonly isDryRun?: boolean;

  /** Reads an object. @throws {ApiError} of kind notFound if it does not exist */
  get<T extends KubernetesObject>(
    resource: Resource<T>,
    at: ObjectName,
    options?: GetOptions,
  ): Promise<T>;

  /** One page; `continueToken` of the answer leads to the next. */
  list<T extends KubernetesObject>(
    resource: Resource<T>,
    options?: ListOptions,
  ): Promise<ObjectList<T>>;

  /**
   * Resolves once the server has accepted the watch. Iterate the answer once; it ends when the
   * server ends it, throws `ApiError` when the connection fails, and ends quietly when `signal`
   * aborts. Leaving the iteration closes the connection.
   */
  watch<T extends KubernetesObject>(
    resource: Resource<T>,
    options?: WatchOptions,
  ): Promise<WatchStream<T>>;

  /** Creates an object. @throws {ApiError} of kind alreadyExists if the name is taken */
  create<T extends KubernetesObject>(
    resource: Resource<T>,
    object: Draft<T>,
    options?: WriteOptions,
  ): Promise<T>;

  /** Replaces the object; a stale `metadata.resourceVersion` is a `conflict`. */
  update<T extends KubernetesObject>(
    resource: Resource<T>,
    object: T,
    options?: WriteOptions & { readonly subresource?: string },
  ): Promise<T>;

  /** Patches an object or a subresource. */
  patch<T extends KubernetesObject>(
    resource: Resource<T>,
    at: ObjectName,
    patch: Patch,
    options?: WriteOptions & { readonly subresource?: string },
  ): Promise<T>;

  /** Resolves when the server has accepted the deletion; finalizers may keep the object for longer. */
  delete(resource: Resource, at: ObjectName, options?: DeleteOptions): Promise<void>;

  /** Any other path of the server (`/version`, discovery): the parsed JSON answer. */
  raw(request: RawRequest): Promise<unknown>;
}

/** Options of `Call`. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

/** Options of `Get`. */
export interface GetOptions extends CallOptions {
  /** `"0"`: any state a cache has. Absent: the most recent. */
  readonly resourceVersion?: string | undefined;
}

/** Which objects. */
export interface Selection {
  /** Absent: all namespaces. */
  readonly namespace?: string | undefined;
  /** `app=web,tier!=db` */
  readonly labelSelector?: string | undefined;
  /** `metadata.name=web` */
  readonly fieldSelector?: string | undefined;
}

/** Narrows a list or watch to a range of hashes, where the server knows how (KEP-5866, alpha). */
export interface ShardSelection {
  /** `shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')` */
  readonly shardSelector?: string | undefined;
}

/** Options of `List`. */
export interface ListOptions extends CallOptions, Selection, ShardSelection {
  readonly resourceVersion?: string | undefined;
  readonly resourceVersionMatch?: 'NotOlderThan' | 'Exact' | undefined;
  /** Objects on a page; absent or 0: all. */
  readonly limit?: number | undefined;
  readonly continueToken?: string | undefined;
  /** Ask for `PartialObjectMetadata` instead of whole objects. */
  readonly metadataOnly?: boolean | undefined;
}

/** Options of `Watch`. */
export interface WatchOptions extends CallOptions, Selection, ShardSelection {
  /** Where to begin; absent: the most recent state, sent as synthetic `added` events. */
  readonly resourceVersion?: string | undefined;
  readonly resourceVersionMatch?: 'NotOlderThan' | undefined;
  /** Stream the state first and mark its end by a bookmark (WatchList, KEP-3157). */
  readonly sendInitialEvents?: boolean | undefined;
  readonly allowWatchBookmarks?: boolean | undefined;
  /** After how long the server ends the watch by itself. */
  readonly timeoutSeconds?: number | undefined;
  readonly metadataOnly?: boolean | undefined;
}

/** The events of a watch, in order. */
export interface WatchStream<T extends KubernetesObject> extends AsyncIterable<WatchEvent<T>> {
  /** `Clock.monotonic()` when bytes last arrived: a sign of life even where no event follows. */
  readonly lastByteMs: number;
  /**
   * The same events, those that arrived together at once, for who cannot afford a promise for each;
   * iterate one or the other. Absent: they come one by one.
   */
  batches?(): AsyncIterable<readonly WatchEvent<T>[]>;
  /**
   * Of the connection that carries the watch, if it is asked for signs of life while it is silent:
   * one that does not answer ends the watch. Absent: only what the watch says shows that it lives.
   */
  readonly activity?: ConnectionActivity | undefined;
}

/** Options of `Write`. */
export interface WriteOptions extends CallOptions {
  /** Who writes, in managedFields. Required by `apply`. */
  readonly fieldManager?: string | undefined;
  readonly dryRun?: boolean | undefined;
  readonly fieldValidation?: 'Ignore' | 'Warn' | 'Strict' | undefined;
}

/** A change to a stored object. */
export type Patch =
  /** RFC 7386. */
  | { readonly type: 'merge'; readonly body: object }
  /** RFC 6902. */
  | { readonly type: 'json'; readonly body: readonly JsonPatchOperation[] }
  /** Built-in kinds only. */
  | { readonly type: 'strategic'; readonly body: object }
  /** Server-side apply; `force` takes fields over from other managers. */
  | { readonly type: 'apply'; readonly body: object; readonly force?: boolean };

/** An operation of a JSON patch (RFC 6902). */
export interface JsonPatchOperation {
  readonly op: 'add' | 'remove' | 'replace' | 'move' | 'copy' | 'test';
  readonly path: string;
  readonly from?: string;
  readonly value?: unknown;
}

/** Options of `Delete`. */
export interface DeleteOptions extends CallOptions {
  /** Delete this object and no other of its name. */
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly propagationPolicy?: 'Orphan' | 'Background' | 'Foreground' | undefined;
  readonly gracePeriodSeconds?: number | undefined;
  readonly dryRun?: boolean | undefined;
}

export interface RawRequest extends CallOptions {
  readonly method?: 'GET' | 'POST';
  readonly path: string;
  readonly accept?: string;
  readonly body?: unknown;
}
