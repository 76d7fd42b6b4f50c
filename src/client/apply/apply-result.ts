import type { ApiErrorKind } from '../../api/api-error.ts';
import type { KubernetesObject } from '../../api/object.ts';
import type { Resource } from '../../api/resource.ts';
import type { Manifest, ManifestObject } from './manifest.ts';
import { ApiError } from '../../api/api-error.ts';

/** The result of applying one manifest. */
export type ApplyResult =
  | {
      readonly kind: 'applied';
      readonly manifest: Manifest;
      readonly resource: Resource;
      readonly change: ApplyChange;
      /** The object as stored, or in a dry run, as it would be stored. */
      readonly object: KubernetesObject;
    }
  | {
      readonly kind: 'rejected';
      readonly manifest: Manifest;
      /** Absent if the server does not have the kind. */
      readonly resource?: Resource;
      readonly rejection: Rejection;
    };

/** `unknown`: the user cannot read the object, so its previous state is not known. */
export type ApplyChange = 'created' | 'configured' | 'unchanged' | 'unknown';

/** The reason why an object was not applied. No message quotes a value of a Secret. */
export type Rejection =
  | {
      readonly reason: 'unknownKind';
      readonly message: string;
      /** Similar kinds of the server: `apps/v1 Deployment`. */
      readonly suggestions: readonly string[];
    }
  /** The server does not support patching objects of the kind. */
  | { readonly reason: 'notApplicable'; readonly message: string }
  /** The manifest names another namespace than the one in the options. */
  | { readonly reason: 'otherNamespace'; readonly message: string }
  /** Its CustomResourceDefinition, from the same batch, was not served within the timeout. */
  | { readonly reason: 'notServed'; readonly message: string }
  /** Other field managers own fields; `force` takes them over. */
  | {
      readonly reason: 'conflict';
      readonly message: string;
      readonly conflicts: readonly FieldConflict[];
      readonly error: ApiError;
    }
  | { readonly reason: 'server'; readonly message: string; readonly error: ApiError };

/** A field with another value that another field manager owns. */
export interface FieldConflict {
  /** Path as the server writes it: `.spec.replicas` */
  readonly field: string;
  /** `"kubectl-client-side-apply" using apps/v1` */
  readonly manager: string;
}

/** Explains the server's error, without values of Secrets. */
export function rejectionOf(rejected: ApiError, object: ManifestObject): Rejection {
  const error = isSecret(object) ? withoutValues(rejected) : rejected;
  const conflicts = conflictsIn(error);
  if (conflicts.length === 0) return { reason: 'server', message: error.message, error };
  return { reason: 'conflict', message: conflictMessage(conflicts), conflicts, error };
}

/** Reports whether all further requests would fail with the same error. */
export function isFatal(error: ApiError): boolean {
  return error.kind === 'unreachable' || error.kind === 'unauthorized';
}

function conflictsIn({ kind, details }: ApiError): readonly FieldConflict[] {
  if (kind !== 'conflict') return [];
  return (details?.causes ?? [])
    .filter(({ reason }) => reason === 'FieldManagerConflict')
    .map(({ field = '', message = '' }) => ({
      field,
      manager: message.replace(/^conflicts? with /, ''),
    }));
}

/** Lists the fields of each manager. */
function conflictMessage(conflicts: readonly FieldConflict[]): string {
  const byManager = Map.groupBy(conflicts, ({ manager }) => manager);
  const groups = Array.from(
    byManager,
    ([manager, fields]) => `${fields.map(({ field }) => field).join(', ')} by ${manager}`,
  );
  const fields = conflicts.length === 1 ? 'a field was' : `${conflicts.length} fields were`;
  return `${fields} set to another value by other managers: ${groups.join('; ')}`;
}

function isSecret({ apiVersion, kind }: ManifestObject): boolean {
  return apiVersion === 'v1' && kind === 'Secret';
}

/** Kinds of errors whose messages contain addresses and field managers, but never values of the object. */
const CONTENTLESS: ReadonlySet<ApiErrorKind> = new Set([
  'unauthorized',
  'forbidden',
  'notFound',
  'methodNotAllowed',
  'notAcceptable',
  'unsupportedMediaType',
  'conflict',
  'requestEntityTooLarge',
  'tooManyRequests',
  'unavailable',
  'timeout',
  'unreachable',
]);

/** Texts of the server that name a field without its value. Field names are not secret. */
const SAFE_TEXTS =
  /(?:unknown|duplicate) field "[\w.[\]/-]{1,253}"|\.[\w.-]{1,253}: (?:expected \w+|field not declared in schema)|illegal base64 data at input byte \d+/g;

/** Returns the error without texts that can quote a value of the Secret. */
export function withoutValues({ kind, code, reason, message, details }: ApiError): ApiError {
  if (CONTENTLESS.has(kind)) return new ApiError({ kind, code, reason, message, details });
  const fields = (details?.causes ?? []).map(
    (cause) => `${cause.field ?? ''}: ${cause.reason ?? 'invalid'}`,
  );
  const safeTexts = new Set([...fields, ...(message.match(SAFE_TEXTS) ?? [])]);
  const known = safeTexts.size === 0 ? '' : `: ${[...safeTexts].join(', ')}`;
  return new ApiError({
    kind,
    code,
    reason,
    message: `the server rejected the Secret (${code} ${reason ?? kind})${known}. Its message is omitted because it can quote a value`,
  });
}
