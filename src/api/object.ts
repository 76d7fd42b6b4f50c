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
export type Draft<T extends KubernetesObject> = DraftFields<T> & {
  metadata: Partial<ObjectMeta>;
};

/**
 * The object of a create request: a draft. Parts can be read-only, such as constants and parts of cached objects. Optional
 * fields can be `undefined`: they are not sent.
 */
export type NewObject<T extends KubernetesObject> = ReadonlyDraft<T> & {
  readonly metadata: Sent<Partial<ObjectMeta>>;
};

/**
 * The object of an update request. The server keeps or sets the missing metadata. An update with the resourceVersion
 * `''` replaces the object also if it has changed.
 */
export type ChangedObject<T extends KubernetesObject> = NewObject<T> & {
  readonly metadata: Readonly<Pick<ObjectMeta, 'name' | 'resourceVersion'>>;
};

type DraftFields<T extends KubernetesObject> = Omit<T, 'metadata' | 'status'> &
  (T extends { status?: infer S } ? { status?: S } : unknown);

type ReadonlyDraft<T extends KubernetesObject> =
  | DraftFields<T>
  | (Readonly<Pick<KubernetesObject, 'apiVersion' | 'kind'>> & SentMembers<DraftFields<T>>);

/** A value that is only read and sent: read-only, and with optional members that can be `undefined`. */
type Sent<T> = T extends readonly (infer E)[]
  ? readonly Sent<E>[]
  : T extends object
    ? SentMembers<T>
    : T;

type SentMembers<T> = {
  readonly [K in keyof T]: object extends Pick<T, K> ? Sent<T[K]> | undefined : Sent<T[K]>;
};

/** An object of a kind that is known only at run time. Its other fields have the type `unknown`. */
export interface UnstructuredObject extends KubernetesObject {
  [field: string]: unknown;
}

/** Whether the fields of `T` are not known, as those of {@link KubernetesObject}. */
type IsUntyped<T> = [keyof T] extends [keyof KubernetesObject] ? true : false;

/** Fields that identify the items of lists in server-side apply and in strategic merge patches. */
type Identity =
  | 'name'
  | 'key'
  | 'type'
  | 'uid'
  | 'ip'
  | 'port'
  | 'containerPort'
  | 'mountPath'
  | 'devicePath'
  | 'topologyKey'
  | 'whenUnsatisfiable'
  | 'resourceClaimName'
  | 'resourceID'
  | 'driver'
  | 'device'
  | 'pool'
  | 'rule';

type Applied<T> = T extends readonly (infer E)[]
  ? readonly (Applied<E> & IdentityOf<E>)[]
  : T extends object
    ? { [K in keyof T]?: Applied<T[K]> | undefined }
    : T;

type IdentityOf<E> = E extends object ? Readonly<Pick<E, keyof E & Identity>> : unknown;

/**
 * The fields of an object that a field manager sets by server-side apply. All fields of the kind are optional. Items of
 * lists have the fields that identify them, such as the name of a container.
 */
export type ApplyConfiguration<T extends KubernetesObject> =
  IsUntyped<T> extends true
    ? object
    : Applied<Omit<T, keyof KubernetesObject>> & {
        readonly apiVersion: string;
        readonly kind: string;
        readonly metadata: Applied<ObjectMeta> & { readonly name: string };
      };

type Merged<T> = T extends readonly unknown[]
  ? DeepReadonly<T>
  : T extends object
    ? { [K in keyof T]?: Merged<T[K]> | null | undefined }
    : T;

/** A JSON merge patch. It has the fields to change; `null` removes a field, and a list replaces the whole list. */
export type MergePatch<T extends KubernetesObject> = IsUntyped<T> extends true ? object : Merged<T>;

type ListDirectives<K extends string> = string extends K
  ? never
  : `$deleteFromPrimitiveList/${K}` | `$setElementOrder/${K}`;

/** Directives of a strategic merge patch to an object with the fields of `T`. */
type Directives<T> = {
  readonly [K in keyof T & string as ListDirectives<K>]?: readonly unknown[];
} & {
  readonly $patch?: 'delete' | 'merge' | 'replace';
  readonly $retainKeys?: readonly string[];
};

type StrategicallyMerged<T> = T extends readonly (infer E)[]
  ? readonly StrategicallyMerged<E>[]
  : T extends object
    ? { [K in keyof T]?: StrategicallyMerged<T[K]> | null | undefined } & Directives<T>
    : T;

/** A strategic merge patch. It has the fields to change; items of lists are merged by the fields that identify them. */
export type StrategicMergePatch<T extends KubernetesObject> =
  IsUntyped<T> extends true ? object : StrategicallyMerged<T>;

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
