import type { ApiError } from './api-error.ts';

/** `meta/v1` OwnerReference. */
export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

export interface ManagedFieldsEntry {
  manager?: string;
  operation?: 'Apply' | 'Update';
  apiVersion?: string;
  time?: string;
  fieldsType?: 'FieldsV1';
  fieldsV1?: Record<string, unknown>;
  subresource?: string;
}

/** Metadata of an object on the server. Timestamps are RFC 3339 strings. */
export interface ObjectMeta {
  name: string;
  /** Absent for cluster-scoped kinds. */
  namespace?: string;
  uid: string;
  resourceVersion: string;
  creationTimestamp: string;
  generateName?: string;
  generation?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: OwnerReference[];
  finalizers?: string[];
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  managedFields?: ManagedFieldsEntry[];
  selfLink?: string;
}

/** An object on the server. Every kind extends it. */
export interface KubernetesObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
}

/** An object, or a part of one, in a create or apply request. The server sets the missing fields. */
export type Draft<T extends KubernetesObject> = Omit<T, 'metadata' | 'status'> & {
  metadata: Partial<ObjectMeta>;
} & (T extends { status?: infer S } ? { status?: S } : unknown);

/** A list response. The items always have `apiVersion` and `kind`. */
export interface ObjectList<T extends KubernetesObject> {
  readonly items: T[];
  /** The resourceVersion of the whole list, from its first page. */
  readonly resourceVersion: string;
  /** Token of the next page, absent on the last page. */
  readonly continueToken?: string;
  /** Number of objects on later pages, if the server sends it. */
  readonly remainingItemCount?: number;
}

/** A type whose values must not be changed, such as cached objects. */
export type DeepReadonly<T> = T extends (infer E)[]
  ? readonly DeepReadonly<E>[]
  : T extends object
    ? { readonly [K in keyof T]: DeepReadonly<T[K]> }
    : T;

/** A type of client-node with timestamps as strings, as in JSON, instead of `Date`. */
export type Wire<T> = T extends Date
  ? string
  : T extends (infer E)[]
    ? Wire<E>[]
    : T extends object
      ? { [K in keyof T]: Wire<T[K]> }
      : T;

/** A kind of client-node as a server sends it. */
export type Builtin<T> = KubernetesObject & Omit<Wire<T>, 'apiVersion' | 'kind' | 'metadata'>;

/** An event of a watch. */
export type WatchEvent<T extends KubernetesObject> =
  | { readonly type: 'added' | 'modified' | 'deleted'; readonly object: T }
  | {
      readonly type: 'bookmark';
      readonly resourceVersion: string;
      /** The initial state requested with `sendInitialEvents` is complete. */
      readonly initialEventsEnd: boolean;
    }
  | { readonly type: 'error'; readonly error: ApiError };
