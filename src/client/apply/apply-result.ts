import type { ApiErrorKind } from '../../api/api-error.ts';
import type { KubernetesObject } from '../../api/object.ts';
import type { Resource } from '../../api/resource.ts';
import type { Manifest, ManifestObject } from './manifest.ts';
import { ApiError } from '../../api/api-error.ts';

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

/** What the server's answer to an apply means, in words that may be shown to anybody. */
export function refusalOf(refused: ApiError, object: ManifestObject): Refusal {
  const error = isSecret(object) ? withoutValues(refused) : refused;
  const conflicts = conflictsIn(error);
  if (conflicts.length === 0) return { reason: 'server', message: error.message, error };
  return { reason: 'conflict', message: conflictMessage(conflicts), conflicts, error };
}

/** Nobody will be answered otherwise: there is no use in asking on. */
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

/** Fields under the name of who has set them, as there may be many. */
function conflictMessage(conflicts: readonly FieldConflict[]): string {
  const byManager = Map.groupBy(conflicts, ({ manager }) => manager);
  const groups = Array.from(
    byManager,
    ([manager, theirs]) => `${theirs.map(({ field }) => field).join(', ')} by ${manager}`,
  );
  const what = conflicts.length === 1 ? 'a field was' : `${conflicts.length} fields were`;
  return `${what} set by others, to something else: ${groups.join('; ')}`;
}

function isSecret({ apiVersion, kind }: ManifestObject): boolean {
  return apiVersion === 'v1' && kind === 'Secret';
}

/** Errors whose words come from the address and the authors of the object, never from its content. */
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

/** What a server says of a field without its value: names of fields are no secret. */
const HARMLESS_WORDS =
  /(?:unknown|duplicate) field "[\w.[\]/-]{1,253}"|\.[\w.-]{1,253}: (?:expected \w+|field not declared in schema)|illegal base64 data at input byte \d+/g;

/** The same error; words that may quote a value of the Secret are left out of it. */
function withoutValues({ kind, code, reason, message, details }: ApiError): ApiError {
  if (CONTENTLESS.has(kind)) return new ApiError({ kind, code, reason, message, details });
  const fields = (details?.causes ?? []).map(
    (cause) => `${cause.field ?? ''}: ${cause.reason ?? 'invalid'}`,
  );
  const words = new Set([...fields, ...(message.match(HARMLESS_WORDS) ?? [])]);
  const known = words.size === 0 ? '' : `: ${[...words].join(', ')}`;
  return new ApiError({
    kind,
    code,
    reason,
    message: `the server refused the Secret (${code} ${reason ?? kind})${known}. Its own words may quote a value and are left out`,
  });
}
