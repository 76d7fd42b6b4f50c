import type { JsonObject } from '../../../util/json-value.ts';
import type { CheckSteps } from '../../objects/check-steps.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import type {
  ResourceDefinition,
  ResourceHooks,
  StoredAs,
  StoredObject,
} from '../../objects/resource-definition.ts';
import type { ScaleFieldPaths } from '../../objects/subresources.ts';

/** Returns the warnings of a valid object. `previous` is absent on create. */
export type KindWarnings = (
  object: CheckedObject<StoredObject>,
  previous?: StoredObject,
) => readonly string[];

/**
 * A built-in kind: its differences from a plain object with a schema. Names, scope, verbs and subresources are
 * generated (generated/kinds.ts), as are schemas and messages.
 */
export interface BuiltinKind extends KindTraits {
  /**
   * Group and plural: `apps/deployments`, or `pods` in the core group. A version precedes the plural if versions differ:
   * `autoscaling/v1/horizontalpodautoscalers`.
   */
  readonly resource: string;
}

/** Differences that several kinds share. */
export interface KindTraits extends Partial<
  Pick<
    ResourceDefinition,
    | 'columns'
    | 'createOnUpdate'
    | 'deprecationWarning'
    | 'keepsStatus'
    | 'nameFormat'
    | 'prefixFormat'
    | 'orphansDependents'
    | 'ownsNothing'
    | 'returnsDeleted'
    | 'revalidatesName'
    | 'review'
    | 'rowConditions'
    | 'selectableFields'
    | 'statusKeeps'
    | 'tracksGeneration'
    | 'unconditionalUpdate'
    | 'validatesMetadataLast'
  >
> {
  readonly hooks?: Omit<ResourceHooks, 'validate' | 'validateInSteps' | 'validateUpdate'>;
  /** Validates the object beyond its schema. `previous` is absent on create. */
  readonly validate?: (
    object: CheckedObject<StoredObject>,
    previous: StoredObject | undefined,
  ) => void;
  /** Validates the object like `validate`, in steps. */
  readonly validateInSteps?: (
    object: CheckedObject<StoredObject>,
    previous: StoredObject | undefined,
  ) => CheckSteps;
  /** Validates the change from `previous`. */
  readonly validateUpdate?: (
    object: CheckedObject<StoredObject>,
    previous: StoredObject,
    subresource?: string,
  ) => void;
  readonly warnings?: KindWarnings;
  /** Returns the warnings of a write of the status. */
  readonly statusWarnings?: KindWarnings;
  /** Paths of `/scale`, if it is a subresource. */
  readonly scale?: ScaleFieldPaths;
  /**
   * Default values by path: `spec.replicas`, `webhooks[].failurePolicy`. A default applies if the parent object
   * is present and the field is not.
   */
  readonly defaults?: Readonly<JsonObject>;
  /** Paths of fields that feature gates turn off by default, in the form of `fieldTree`. */
  readonly disabledFields?: readonly string[];
  /** Paths of fields that no update changes. */
  readonly immutable?: readonly string[];
  /** True if errors in these fields do not show the new value, as those of declarative validation. */
  readonly hidesImmutable?: boolean;
  /**
   * Present on another representation of the stored objects of `kind`: `autoscaling/v2/horizontalpodautoscalers`, which
   * has the same columns.
   */
  readonly storedAs?: Omit<StoredAs, 'definition'> & { readonly kind: string };
}

/** Kinds whose status cannot be written together with metadata. */
export const STATUS_ONLY = {
  statusKeeps: [
    'deletionTimestamp',
    'selfLink',
    'labels',
    'annotations',
    'finalizers',
    'ownerReferences',
  ],
} as const satisfies KindTraits;
