import type { ApiError } from './api-error.ts';

/** Who, through an owner reference, an object belongs to. */
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

/** Metadata of an object that a server has stored. Timestamps are RFC 3339 strings, as sent. */
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

/** An object as the server stores it. Every kind extends this. */
export interface KubernetesObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
}

/**
 * An object that the server has not seen, or a part of one: what is sent to create or to apply.
 * The server fills in what is missing.
 */
export type Draft<T extends KubernetesObject> = Omit<T, 'metadata' | 'status'> & {
  metadata: Partial<ObjectMeta>;
} & (T extends { status?: infer S } ? { status?: S } : unknown);

/** A list as the server answers it. Items always carry `apiVersion` and `kind`. */
export interface ObjectList<T extends KubernetesObject> {
  readonly items: T[];
  /** Of the list as a whole, at its first page. */
  readonly resourceVersion: string;
  /** Token of the next page; absent on the last. */
  readonly continueToken?: string;
  /** Objects on later pages, if the server says so. */
  readonly remainingItemCount?: number;
}

/** A value that must not be changed: what a cache hands out. */
export type DeepReadonly<T> = T extends (infer E)[]
  ? readonly DeepReadonly<E>[]
  : T extends object
    ? { readonly [K in keyof T]: DeepReadonly<T[K]> }
    : T;

/**
 * What is really on the wire for a type of client-node, which declares its timestamps as `Date`:
 * strings, as the server sent them.
 */
export type Wire<T> = T extends Date
  ? string
  : T extends (infer E)[]
    ? Wire<E>[]
    : T extends object
      ? { [K in keyof T]: Wire<T[K]> }
      : T;

/** A kind declared by client-node, as it is on the wire once a server has stored it. */
export type Builtin<T> = KubernetesObject & Omit<Wire<T>, 'apiVersion' | 'kind' | 'metadata'>;

/** One thing that a watch says. */
export type WatchEvent<T extends KubernetesObject> =
  | { readonly type: 'added' | 'modified' | 'deleted'; readonly object: T }
  | {
      readonly type: 'bookmark';
      readonly resourceVersion: string;
      /** The initial state asked for with `sendInitialEvents` is complete. */
      readonly initialEventsEnd: boolean;
    }
  | { readonly type: 'error'; readonly error: ApiError };
