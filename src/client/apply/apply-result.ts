import type { ApiError } from '../../api/api-error.ts';
import type { KubernetesObject } from '../../api/object.ts';
import type { Resource } from '../../api/resource.ts';
import type { Manifest } from './manifest.ts';

/** What became of one manifest. */
export type ApplyResult =
  | {
      readonly kind: 'applied';
      readonly manifest: Manifest;
      readonly resource: Resource;
      readonly change: ApplyChange;
      /** As the server has it now, or would. */
      readonly object: KubernetesObject;
    }
  | {
      readonly kind: 'refused';
      readonly manifest: Manifest;
      /** Absent of a kind that the server does not have. */
      readonly resource?: Resource;
      readonly refusal: Refusal;
    };

/** `unknown`: whoever applied may not read it, so what was there before is not known. */
export type ApplyChange = 'created' | 'configured' | 'unchanged' | 'unknown';

/** Why an object was not applied. No message quotes a value of a Secret. */
export type Refusal =
  | {
      readonly reason: 'unknownKind';
      readonly message: string;
      /** What may have been meant: `apps/v1 Deployment`. */
      readonly suggestions: readonly string[];
    }
  /** The server has the kind, and no objects of it that could be patched. */
  | { readonly reason: 'notApplicable'; readonly message: string }
  /** It belongs into another namespace than the one that was asked for. */
  | { readonly reason: 'otherNamespace'; readonly message: string }
  /** Its CustomResourceDefinition, of the same batch, was not served in time. */
  | { readonly reason: 'notServed'; readonly message: string }
  /** Others have set the fields; `force` takes them over. */
  | {
      readonly reason: 'conflict';
      readonly message: string;
      readonly conflicts: readonly FieldConflict[];
      readonly error: ApiError;
    }
  | { readonly reason: 'server'; readonly message: string; readonly error: ApiError };

/** A field that an apply would change, and that somebody else has set. */
export interface FieldConflict {
  /** As the server writes it: `.spec.replicas` */
  readonly field: string;
  /** `"kubectl-client-side-apply" using apps/v1` */
  readonly manager: string;
}
