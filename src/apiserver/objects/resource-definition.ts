import type { NameFormat } from '../../api/object-names.ts';
import type { DeepReadonly, ObjectMeta } from '../../api/object.ts';
import type { Authorizer } from '../../api/policy-rule.ts';
import type { Authenticator, User } from '../../api/user.ts';
import type { FieldError } from '../../api/field-error.ts';
import type { JsonSchema } from '../../api/json-schema.ts';
import type { JsonObject } from '../../util/json-value.ts';
import type { CheckSteps } from './check-steps.ts';
import type { FieldTree } from './field-tree.ts';
import type { Subresources } from './subresources.ts';

/**
 * An object inside the server. Between decoding and storing, one operation owns it and may change it.
 * A stored object is a `StoredObject` and immutable.
 */
export interface ApiObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  [field: string]: unknown;
}

export type StoredObject = DeepReadonly<ApiObject>;

/** Copies the top two levels of a stored object; deeper levels must not be changed. */
export function shallowCopy(object: StoredObject): ApiObject {
  return { ...object, metadata: { ...object.metadata } } as ApiObject;
}

/**
 * The definition of a resource in one version: names, schema, and differences from a plain object.
 * Built-in kinds have a table of them; a CRD has one for each served version.
 */
export interface ResourceDefinition extends ResourceNames {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly namespaced: boolean;

  /** Schema of the object, with or without `metadata`. If absent, any JSON is stored unchanged. */
  readonly schema?: JsonSchema | undefined;

  readonly subresources: Subresources;

  /** Every column of a Table in order, `Name` included (Event has it as a wide column). */
  readonly columns: readonly TableColumn[];

  /** Returns the conditions of an object's row (Pod: whether it has ended). */
  readonly rowConditions?: (object: StoredObject) => readonly TableRowCondition[];

  /**
   * Fields that a `fieldSelector` can contain besides `metadata.name` and `metadata.namespace`, and how to
   * read them (an empty string where there is no value).
   * @default {}
   */
  readonly selectableFields?: Readonly<Record<string, (object: StoredObject) => string>>;

  /**
   * Whether `metadata.generation` counts changes outside of `metadata` and `status`.
   * @default false
   */
  readonly tracksGeneration?: boolean;

  /** Fields that feature gates turn off by default. They are dropped before an object is stored. */
  readonly disabledFields?: FieldTree;

  /**
   * Format of names.
   * @default 'dns1123Subdomain'
   */
  readonly nameFormat?: NameFormat;

  /**
   * Format of `generateName` in a new object.
   * @default `nameFormat`
   */
  readonly prefixFormat?: NameFormat;

  /** True if the metadata of a new object matters only if its other fields are valid. */
  readonly validatesMetadataLast?: boolean;

  /**
   * Which updates check the format of `generateName` again.
   * @default none
   */
  readonly revalidatesName?: 'object' | 'object and status';

  /** True for kinds that a CRD defines: no strategic merge, `status` isolated with all metadata. */
  readonly custom?: boolean;

  /**
   * Version in which objects of a CRD are stored.
   * @default the version of this definition
   */
  readonly storageVersion?: string | undefined;
  /** Schemas of all versions of a CRD, with those that are not served. */
  readonly versionSchemas?: Readonly<Record<string, JsonSchema | undefined>>;

  /**
   * True while the CRD of the kind is being deleted: no object can be created.
   * @default false
   */
  readonly terminating?: boolean;

  /** The warning in every response of a deprecated version. Absent for other versions. */
  readonly deprecationWarning?: string | undefined;

  /**
   * Whether a PUT without `metadata.resourceVersion` overwrites the object unconditionally.
   * @default true, false for custom kinds
   */
  readonly unconditionalUpdate?: boolean;

  /**
   * Whether a PUT creates a missing object (Event, Lease).
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
   * Metadata that a write of `/status` does not change; custom kinds have `metadata`.
   * @default none
   */
  readonly statusKeeps?: 'metadata' | readonly (keyof ObjectMeta)[];

  /**
   * Whether a deletion without a propagation policy orphans the dependents (Job, ReplicationController).
   * @default false
   */
  readonly orphansDependents?: boolean;
  /**
   * Whether a deletion ignores the propagation policy, because no object has an owner of this kind (Event).
   * @default false
   */
  readonly ownsNothing?: boolean;

  /** Present on a kind that is another representation of stored objects of `definition` (events.k8s.io). */
  readonly storedAs?: StoredAs;

  /** Present on a version of a CRD whose webhook converts its objects. */
  readonly conversion?: WebhookConversion | undefined;

  readonly hooks?: ResourceHooks;

  /** Returns the warnings of a valid object. `previous` is absent on create. */
  readonly warnings?: (
    object: StoredObject,
    previous: StoredObject | undefined,
    subresource?: string,
  ) => readonly string[];

  /** Present on reviews (SubjectAccessReview): a create returns the status and stores nothing. */
  readonly review?: Review;
}

/** The conversion of stored objects to one version of a CRD by a webhook. */
export interface WebhookConversion {
  /** `spec.conversion.webhook` of the CRD. */
  readonly webhook: JsonObject;
  /** Converted objects by stored object. */
  readonly converted: WeakMap<StoredObject, StoredObject>;
}

/** The conversion between a representation and the stored objects. */
export interface StoredAs {
  /** The stored kind, whose hooks apply. */
  readonly definition: ResourceDefinition;
  readonly toStored: (object: ApiObject) => ApiObject;
  readonly fromStored: (object: StoredObject) => StoredObject;
}

/**
 * Answers a review: returns the object with its status.
 *
 * @throws {StatusError} 400 or 422 if the review is invalid
 */
export type Review = (question: StoredObject, context: ReviewContext) => StoredObject;

export interface ReviewContext {
  /** The user who sends the review. */
  readonly user: User;
  readonly access: Authenticator & Authorizer;
  /** Wall-clock time in milliseconds since the Unix epoch. */
  readonly now: number;
}

/** Gets each object after it was written or removed. */
export interface WriteObserver {
  written(definition: ResourceDefinition, object: StoredObject): void;
  removed(definition: ResourceDefinition, object: StoredObject): void;
}

export interface ResourceNames {
  /** Lower-case, as in URLs: `pods`. */
  readonly plural: string;
  readonly singular: string;
  readonly kind: string;
  readonly listKind: string;
  /** Names that kubectl accepts instead of the plural: `po`. */
  readonly shortNames: readonly string[];
  /** Groups of kinds that kubectl accepts as one name: `all`. */
  readonly categories: readonly string[];
}

/** A condition of a table row. kubectl hides the rows of completed Pods on request. */
export interface TableRowCondition {
  readonly type: 'Completed';
  readonly status: 'True';
  readonly reason: string;
  readonly message: string;
}

/** A column of `kubectl get`. */
export interface TableColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  /** `name` for the first column; otherwise an OpenAPI format. */
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

/** The context of the operation that calls a hook. */
export interface HookContext {
  /** Wall-clock time in milliseconds since the Unix epoch. */
  readonly now: number;
  /** A fresh random UUID. */
  uid(): string;
  /** User that sends the request. */
  readonly user: User;
  /** Verb of the request. */
  readonly verb: string;
  readonly subresource: string | undefined;
  readonly isDryRun: boolean;
  /** Adds a warning to the response, also if the object is refused. */
  readonly warn: (text: string) => void;
  readonly access: Authorizer;
  /** Returns the plural name of a served kind; undefined if it is not served. */
  readonly pluralOf: (apiVersion: string, kind: string) => string | undefined;
  /** Returns the stored objects of another resource. */
  readonly list: (resource: {
    readonly group: string;
    readonly plural: string;
  }) => readonly StoredObject[];
}

/** The context of `ResourceHooks.admit`. */
export interface AdmissionHookContext extends Pick<HookContext, 'list'> {
  /** Returns the 403 with which an admission plugin rejects the object. */
  readonly forbidden: (why: string) => Error;
}

/**
 * The differences of a kind from a plain object. Hooks run synchronously within one operation, in the
 * order of this declaration. A hook that changes `object` changes the stored object.
 */
export interface ResourceHooks {
  /** Sets defaults that depend on other fields, which a schema cannot express. Runs on every write. */
  readonly applyDefaults?: (object: ApiObject) => void;
  /**
   * Changes a new object (`previous` is absent) or an updated one as the built-in admission plugins of the kind do. Runs
   * before mutating policies and webhooks, and once more if they change the object. Does not run for subresources.
   *
   * @throws {Error} from `context.forbidden` if a plugin rejects the object
   */
  readonly admit?: (
    object: ApiObject,
    previous: StoredObject | undefined,
    context: AdmissionHookContext,
  ) => void;
  /**
   * Checks an object that is complete and valid as the built-in admission plugins of the kind do.
   *
   * @param previous the stored object of an update
   * @throws {Error} from `context.forbidden` if a plugin rejects the object
   */
  readonly requireAdmitted?: (
    object: StoredObject,
    previous: StoredObject | undefined,
    context: AdmissionHookContext,
  ) => void;
  /** Sets or clears the fields that clients cannot set. `metadata` is already complete. */
  readonly prepareForCreate?: (object: ApiObject, context: HookContext) => void;
  /** Sets or clears such fields at an update. */
  readonly prepareForUpdate?: (
    object: ApiObject,
    previous: StoredObject,
    context: HookContext,
  ) => void;
  /** Validates the object beyond its schema. `previous` is absent on create. */
  readonly validate?: (
    object: StoredObject,
    previous: StoredObject | undefined,
  ) => readonly FieldError[];
  /** Like `validate`, which it replaces for kinds whose validation takes long, in steps. */
  readonly validateInSteps?: (
    object: StoredObject,
    previous: StoredObject | undefined,
    subresource?: string,
  ) => CheckSteps<readonly FieldError[]>;
  /** Validates the change from `previous`: immutable fields. */
  readonly validateUpdate?: (
    object: StoredObject,
    previous: StoredObject,
    subresource?: string,
  ) => readonly FieldError[];
  /**
   * Throws if the user lacks a permission for the content of an admitted object, which may be outdated or invalid.
   *
   * @param previous undefined for a new object
   */
  readonly requireRights?: (
    object: ApiObject,
    previous: StoredObject | undefined,
    context: HookContext,
  ) => void;
  /** Returns an error for each permission that the user needs for the content of a valid object and does not have. */
  readonly authorize?: (
    object: StoredObject,
    previous: StoredObject | undefined,
    context: HookContext,
  ) => readonly FieldError[];
  /**
   * Returns the grace period of a deletion in seconds; 0 deletes at once. If absent, the kind has no
   * grace periods. `requested` is the value in the request.
   */
  readonly gracePeriodSeconds?: (object: StoredObject, requested: number | undefined) => number;
  /**
   * Called when an object gets its `deletionTimestamp` (Namespace: sets the phase). A kind with this hook
   * has no grace periods and generations.
   */
  readonly markDeleted?: (object: ApiObject) => void;
  /** Returns true while something besides `metadata.finalizers` blocks the removal (Namespace). */
  readonly blocksRemoval?: (object: StoredObject) => boolean;
}
