import type { FieldError } from '../api/field-error.ts';
import type { LabelSelector } from '../api/label-selector.ts';
import type { DeepReadonly, Draft, KubernetesObject, ObjectMeta } from '../api/object.ts';
import type { Resource } from '../api/resource.ts';
import type { WithDefaults } from '../util/check-options.ts';

/** Operations that webhooks review. */
export type AdmissionOperation = 'CREATE' | 'UPDATE' | 'DELETE';

/** The user who sent a request to the API server. */
export interface AdmissionUser {
  /** `system:serviceaccount:NAMESPACE:NAME` for a ServiceAccount. */
  readonly username: string;
  readonly uid: string | undefined;
  readonly groups: readonly string[];
  /** Further attributes that the authenticator found. */
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/** A request to the API server that a webhook reviews. */
export interface AdmissionRequest<T extends KubernetesObject = KubernetesObject> {
  readonly operation: AdmissionOperation;
  /** The new object; the object to delete if the operation is `DELETE`. */
  readonly object: DeepReadonly<Draft<T>>;
  /** The object as it is stored, if the operation is `UPDATE`. */
  readonly old: DeepReadonly<T> | undefined;
  readonly user: AdmissionUser;
  /** Whether the API server stores nothing. A function with side effects must then have none. */
  readonly isDryRun: boolean;
  /** Undefined for cluster-scoped kinds. */
  readonly namespace: string | undefined;
  /** Empty if the API server generates the name. */
  readonly name: string;
  /** `status`; undefined for the object itself. */
  readonly subresource: string | undefined;
  /** CreateOptions, UpdateOptions, PatchOptions or DeleteOptions of the request. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Identifies the review, also in the log of the API server. */
  readonly uid: string;
  /** Aborts at the timeout, and when the API server closes the connection. */
  readonly signal: AbortSignal;
  /**
   * Adds a warning to the response, which kubectl prints. The API server truncates long warnings: use at most 120
   * characters.
   */
  readonly warn: (text: string) => void;
}

/** Changes a draft of an object. The server validates the object afterwards: required fields can be missing. */
export type Defaulter<T extends KubernetesObject> = (
  draft: Draft<T>,
  request: AdmissionRequest<T>,
) => void | Promise<void>;

/** Returns errors in the fields of an object; nothing if it is valid. */
export type Validator<T extends KubernetesObject> = (
  object: DeepReadonly<Draft<T>>,
  request: AdmissionRequest<T>,
) => readonly FieldError[] | undefined | void | Promise<readonly FieldError[] | undefined | void>;

type Partially<T> = T extends readonly (infer E)[]
  ? readonly Partially<E>[]
  : T extends object
    ? { readonly [K in keyof T]?: Partially<T[K]> | undefined }
    : T;

/**
 * An object in a conversion. Each field can be missing, also a required one: for server-side apply, the API server
 * converts the parts of objects that field managers own.
 */
export type PartialObject<T extends KubernetesObject> = Partially<
  Omit<T, keyof KubernetesObject>
> & {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: DeepReadonly<Partial<ObjectMeta>>;
};

/**
 * The result of a conversion: the fields of the object in its new version. `apiVersion`, `kind` and `metadata` may be
 * omitted. Of the metadata, only labels and annotations can change.
 */
export type ConvertedObject<T extends KubernetesObject> = Partially<
  Omit<T, keyof KubernetesObject>
> & {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata?: DeepReadonly<Partial<ObjectMeta>>;
};

/** Functions that convert objects between a version and the hub. They return new objects and have no side effects. */
export interface Conversion<V extends KubernetesObject, Hub extends KubernetesObject> {
  /** Converts an object to the hub's version. */
  readonly up: (object: PartialObject<V>) => ConvertedObject<Hub>;
  /** Converts an object from the hub's version. */
  readonly down: (hub: PartialObject<Hub>) => ConvertedObject<V>;
}

/** A CEL expression that decides whether the API server calls the webhook. */
export interface MatchCondition {
  readonly name: string;
  readonly expression: string;
}

/** Options of one function for admission. The API server reads most of them from the webhook configuration. */
export interface AdmissionOptions<O extends AdmissionOperation = AdmissionOperation> {
  /**
   * Lower-case letters, digits and "-". Distinguishes several functions of one type for one kind; it is the end of the
   * path.
   * @default none
   */
  readonly name?: string | undefined;
  /** @default CREATE and UPDATE */
  readonly operations?: readonly O[] | undefined;
  /**
   * Reviewed subresources. `''` is the object itself.
   * @default ['']
   */
  readonly subresources?: readonly string[] | undefined;
  /**
   * Whether the function is called for updates of an object with a deletion timestamp. If its finalizers cannot be
   * removed because the object is not valid any more, the object cannot be deleted.
   * @default false
   */
  readonly whileDeleting?: boolean | undefined;
  /**
   * What the API server does if the call fails: reject the request, or ignore the webhook.
   * @default 'Fail'
   */
  readonly failurePolicy?: 'Fail' | 'Ignore' | undefined;
  /**
   * Timeout of the call in seconds, 1 to 30. The function has a tenth less: 250 ms to one second.
   * @default 10
   */
  readonly timeoutSeconds?: number | undefined;
  /** @default none */
  readonly matchConditions?: readonly MatchCondition[] | undefined;
  /** Selects namespaces by their labels. @default all namespaces */
  readonly namespaceSelector?: LabelSelector | undefined;
  /** Selects objects by their labels. Users who can change labels can evade the webhook. @default all objects */
  readonly objectSelector?: LabelSelector | undefined;
  /**
   * Side effects of the function, such as writes to other systems. With `NoneOnDryRun`, it checks `isDryRun`.
   * @default 'None'
   */
  readonly sideEffects?: 'None' | 'NoneOnDryRun' | undefined;
}

/** Options of `defaults`. */
export type DefaultingOptions = AdmissionOptions<'CREATE' | 'UPDATE'>;

/** Options with their defaults. */
export type CompleteAdmissionOptions = WithDefaults<
  Omit<AdmissionOptions, 'name' | 'namespaceSelector' | 'objectSelector'>
> &
  Pick<AdmissionOptions, 'name' | 'namespaceSelector' | 'objectSelector'>;

interface AdmissionEntryBase {
  /** As in controller-runtime: `/validate-demo-mark8s-io-v1-count`. Unique. */
  readonly path: string;
  readonly resource: Resource;
  readonly options: CompleteAdmissionOptions;
}

/** A function that sets defaults. */
export interface DefaultingEntry extends AdmissionEntryBase {
  readonly type: 'mutating';
  readonly run: Defaulter<KubernetesObject>;
}

/** A function that validates. */
export interface ValidatingEntry extends AdmissionEntryBase {
  readonly type: 'validating';
  readonly run: Validator<KubernetesObject>;
}

/** A declared function for admission. */
export type AdmissionEntry = DefaultingEntry | ValidatingEntry;

/** A version of a kind, with its conversion to and from the hub. */
export interface Spoke extends Conversion<KubernetesObject, KubernetesObject> {
  readonly resource: Resource;
}

/** The conversions of one kind. */
export interface ConversionEntry {
  /** The version that the others are converted to and from. */
  readonly hub: Resource;
  readonly spokes: readonly Spoke[];
}

/** A rule in CEL. The API server evaluates it itself. */
export interface CelRule {
  /** Expression about the object, `self`; also about the stored object, `oldSelf`, for updates only. */
  readonly rule: string;
  /** What the object must be. @default the expression */
  readonly message?: string;
  /** Expression for the message. @default `message` */
  readonly messageExpression?: string;
  /** The field that is wrong: `.spec.maximum`. @default none */
  readonly fieldPath?: string;
  /** @default 'FieldValueInvalid' */
  readonly reason?:
    'FieldValueDuplicate' | 'FieldValueForbidden' | 'FieldValueInvalid' | 'FieldValueRequired';
}

/** Options of `rules`. */
export interface RuleOptions extends Omit<AdmissionOptions, 'sideEffects' | 'timeoutSeconds'> {
  /**
   * Where the API server has the rules: in a ValidatingAdmissionPolicy, or in the schema of the CRD. A policy is for each
   * kind and version of a resource, and can use `request` and `authorizer`. A schema cannot be removed by users who may
   * change policies, and ignores errors in unchanged values. The options except `name` are those of a policy.
   * @default 'policy'
   */
  readonly as?: 'policy' | 'schema' | undefined;
}

/** Rules in CEL for one version of a kind. */
export interface RuleEntry {
  readonly resource: Resource;
  readonly rules: readonly CelRule[];
  readonly as: 'policy' | 'schema';
  readonly options: CompleteAdmissionOptions;
}

/** What the webhooks of a program review and convert: the data of webhook configurations and CRDs. */
export interface WebhookEntries {
  readonly admission: readonly AdmissionEntry[];
  readonly conversions: readonly ConversionEntry[];
  readonly rules: readonly RuleEntry[];
}

/** Path of the conversions of all kinds, as in controller-runtime. */
export const CONVERSION_PATH = '/convert';
