import type { DeepReadonly, ObjectMeta } from '../api/object.ts';
import type { Authorizer } from './policy-rule.ts';
import type { Authenticator, User } from './user.ts';
import type { FieldError } from './schema/field-error.ts';
import type { JsonSchema } from './schema/json-schema.ts';
import type { JsonObject } from './schema/json-value.ts';

/**
 * An object inside the server. Between decoding and storing it belongs to one operation, which may
 * change it; once stored it is a `StoredObject` and nobody changes it again.
 */
export interface ApiObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  [field: string]: unknown;
}

export type StoredObject = DeepReadonly<ApiObject>;

/**
 * All the server must know of a resource in one version: its names, its schema and where it differs
 * from a plain object. Built-in kinds write one down, a CRD becomes one per served version.
 */
export interface ResourceDefinition extends ResourceNames {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly namespaced: boolean;

  /** Schema of the whole object, `metadata` included or not. Absent: any JSON is stored as it is. */
  readonly schema?: JsonSchema | undefined;

  readonly subresources: Subresources;

  /** Every column of a Table in order, `Name` included (Event has it as a wide column). */
  readonly columns: readonly TableColumn[];

  /**
   * Fields a `fieldSelector` may name besides `metadata.name` and `metadata.namespace`, and how to
   * read them (an empty string where there is no value).
   * @default {}
   */
  readonly selectableFields?: Readonly<Record<string, (object: StoredObject) => string>>;

  /**
   * Whether `metadata.generation` counts changes outside of `metadata` and `status`.
   * @default false
   */
  readonly tracksGeneration?: boolean;

  /**
   * What a name must look like.
   * @default 'dns1123Subdomain'
   */
  readonly nameFormat?: NameFormat;

  /** True for kinds that a CRD defines: no strategic merge, `status` isolated with all metadata. */
  readonly custom?: boolean;

  /**
   * True while the CRD behind the kind is being deleted: nothing new can be created.
   * @default false
   */
  readonly terminating?: boolean;

  /** The warning in every response of a deprecated version. Absent for other versions. */
  readonly deprecationWarning?: string | undefined;

  /**
   * Whether a PUT without `metadata.resourceVersion` overwrites whatever is there.
   * @default true, false for custom kinds
   */
  readonly unconditionalUpdate?: boolean;

  /**
   * Whether a PUT to a name that is free creates it (Event, Lease).
   * @default false
   */
  readonly createOnUpdate?: boolean;

  /**
   * Whether a DELETE that removes the object at once answers with it and not with a Status (Pod,
   * Service, ServiceAccount).
   * @default false
   */
  readonly returnsDeleted?: boolean;

  /**
   * Verbs of the resource itself.
   * @default all
   */
  readonly verbs?: readonly string[];

  /**
   * Whether a create keeps the status of the object although `/status` exists (Node).
   * @default false
   */
  readonly keepsStatus?: boolean;

  /**
   * Whether a deletion without a propagation policy orphans the dependents (Job, ReplicationController).
   * @default false
   */
  readonly orphansDependents?: boolean;

  /** Present on a kind that is another representation of stored objects of `definition` (events.k8s.io). */
  readonly storedAs?: StoredAs;

  /** Present on a version of a CRD whose webhook converts its objects. */
  readonly conversion?: Conversion | undefined;

  readonly hooks?: ResourceHooks;

  /** Present on kinds that are a question (SubjectAccessReview): they can be created, and nothing is kept. */
  readonly review?: Review;
}

/** The conversion of stored objects to one version of a CRD by a webhook. */
export interface Conversion {
  /** Version in which objects are stored when they are written. */
  readonly storageVersion: string;
  readonly storageSchema: JsonSchema | undefined;
  /** `spec.conversion.webhook` of the CRD. */
  readonly webhook: JsonObject;
  /** Converted objects by stored object. */
  readonly converted: WeakMap<StoredObject, StoredObject>;
}

/** The conversion between a representation and the stored objects. */
export interface StoredAs {
  /** The stored kind: its hooks decide. */
  readonly definition: ResourceDefinition;
  readonly toStored: (object: ApiObject) => ApiObject;
  readonly fromStored: (object: StoredObject) => StoredObject;
}

/**
 * Answers a question: the object as it is sent back.
 *
 * @throws {StatusError} 400 or 422 if it cannot be answered as it is put
 */
export type Review = (question: StoredObject, context: ReviewContext) => StoredObject;

export interface ReviewContext {
  /** Who asks. */
  readonly user: User;
  readonly access: Authenticator & Authorizer;
  /** Wall-clock time in milliseconds since the Unix epoch. */
  readonly now: number;
}

export interface ResourceNames {
  /** Lower-case, as in URLs: `pods`. */
  readonly plural: string;
  readonly singular: string;
  readonly kind: string;
  readonly listKind: string;
  /** What kubectl takes instead of the plural: `po`. */
  readonly shortNames: readonly string[];
  /** Sets of kinds that kubectl takes together: `all`. */
  readonly categories: readonly string[];
}

export type NameFormat = 'dns1123Subdomain' | 'dns1123Label' | 'dns1035Label' | 'pathSegment';

export interface Subresources {
  /** `/status` exists: it alone writes `status`, and the main resource never does. */
  readonly status?: boolean;
  readonly scale?: ScalePaths;
  /** `PUT /finalize` writes `spec.finalizers` (Namespace). */
  readonly finalize?: boolean;
  /** `POST /binding` sets `spec.nodeName` (Pod). */
  readonly binding?: boolean;
  /** `POST /eviction` deletes (Pod). */
  readonly eviction?: boolean;
  /** `GET /log` is what a container has printed (Pod). */
  readonly log?: boolean;
  /** `/approval` writes the conditions of a CertificateSigningRequest. */
  readonly approval?: boolean;
  readonly attach?: boolean;
  /** `/ephemeralcontainers` adds containers to a running Pod. */
  readonly ephemeralcontainers?: boolean;
  readonly exec?: boolean;
  readonly portforward?: boolean;
  readonly proxy?: boolean;
  /** `/resize` changes the resources of a Pod's containers. */
  readonly resize?: boolean;
  /** `POST /token` creates a token of a ServiceAccount. */
  readonly token?: boolean;
}

/** Where `/scale` finds its numbers: paths of plain fields, as in a CRD (`.spec.replicas`). */
export interface ScalePaths {
  readonly specReplicasPath: string;
  readonly statusReplicasPath: string;
  /** To a selector in text form, or to a `meta/v1` LabelSelector. */
  readonly labelSelectorPath?: string | undefined;
}

/** A column of `kubectl get`. */
export interface TableColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  /** `name` for the first column; otherwise as OpenAPI formats go. */
  readonly format?: string | undefined;
  readonly description?: string | undefined;
  /**
   * 0 is always shown, higher ones only by `-o wide`.
   * @default 0
   */
  readonly priority?: number | undefined;
  /**
   * The cell: a JSONPath into the object, or a function of it and of the time (milliseconds since
   * the Unix epoch), for ages.
   */
  readonly value: string | ((object: StoredObject, now: number) => TableCell);
}

export type TableCell = string | number | boolean | null;

/** What an operation lets a hook know of itself. */
export interface HookContext {
  /** Wall-clock time in milliseconds since the Unix epoch. */
  readonly now: number;
  /** A fresh random UUID. */
  uid(): string;
  /** User that sends the request. */
  readonly user: User;
  readonly access: Authorizer;
}

/**
 * Where a kind differs from a plain object. Hooks run inside of one operation, synchronously, in
 * the order in which they are written here; a hook that changes `object` changes what is stored.
 */
export interface ResourceHooks {
  /** Defaults that a schema cannot say (they depend on other fields). Runs on every write. */
  readonly applyDefaults?: (object: ApiObject) => void;
  /** Sets or clears what a client does not decide. `metadata` is complete already. */
  readonly prepareForCreate?: (object: ApiObject, context: HookContext) => void;
  /** The same for an update of the main resource or of `subresource`. */
  readonly prepareForUpdate?: (
    object: ApiObject,
    previous: StoredObject,
    context: HookContext & { readonly subresource: string | undefined },
  ) => void;
  /** What is wrong with the object beyond its schema. `previous` is absent on create. */
  readonly validate?: (
    object: StoredObject,
    previous: StoredObject | undefined,
  ) => readonly FieldError[];
  /** What is wrong with the step from `previous`: immutable fields. */
  readonly validateUpdate?: (
    object: StoredObject,
    previous: StoredObject,
    subresource?: string,
  ) => readonly FieldError[];
  /**
   * How long a deletion waits for somebody else to finish it, in seconds; 0 deletes at once. Absent:
   * the kind knows no grace. `requested` is the client's wish.
   */
  readonly gracePeriodSeconds?: (object: StoredObject, requested: number | undefined) => number;
  /**
   * Runs as an object that cannot go yet gets its `deletionTimestamp` (Namespace: its phase). A kind
   * that has this knows nothing of grace and generations.
   */
  readonly markDeleted?: (object: ApiObject) => void;
  /** True while something besides `metadata.finalizers` keeps a deleted object (Namespace). */
  readonly heldBack?: (object: StoredObject) => boolean;
}
