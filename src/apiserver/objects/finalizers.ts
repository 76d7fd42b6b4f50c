import type { DeepReadonly, ObjectMeta } from '../../api/object.ts';
import type { FieldError } from '../../api/field-error.ts';
import { fieldError, MAX_FIELD_ERRORS } from '../../api/field-error.ts';
import { qualifiedNameProblems } from '../../api/object-names.ts';
import type { CheckedObject } from './checked-object.ts';
import type { ResourceDefinition, StoredObject } from './resource-definition.ts';

/** The group of CRDs. */
export const EXTENSIONS = 'apiextensions.k8s.io';

const ORPHAN = 'orphan';
const FOREGROUND = 'foregroundDeletion';
const STANDARD_FINALIZERS: ReadonlySet<string> = new Set([ORPHAN, FOREGROUND, 'kubernetes']);

/** Whether finalizers keep a deleted object. */
export function hasFinalizers({ metadata }: StoredObject): boolean {
  return (metadata.finalizers?.length ?? 0) > 0;
}

/** Returns the finalizers of an object after a deletion with this policy. */
export function deletionFinalizers(
  finalizers: readonly string[] = [],
  policy: string | undefined,
  orphansByDefault: boolean = false,
): string[] {
  const own = finalizers.filter((each) => each !== ORPHAN && each !== FOREGROUND);
  switch (policy) {
    case 'Orphan':
      return [...own, ORPHAN];
    case 'Foreground':
      return [...own, FOREGROUND];
    case 'Background':
      return own;
    default:
      // The policy of an earlier deletion remains.
      return orphansByDefault && own.length === finalizers.length
        ? [...own, ORPHAN]
        : [...finalizers];
  }
}

/** Validates the finalizers in the metadata of any object. */
export function validateFinalizers(
  metadata: CheckedObject,
  finalizers: readonly string[] = [],
): void {
  for (const finalizer of finalizers) {
    metadata.problems('finalizers', qualifiedNameProblems(finalizer), finalizer);
  }
  if (finalizers.includes(ORPHAN) && finalizers.includes(FOREGROUND)) {
    const detail = `finalizer ${ORPHAN} and ${FOREGROUND} cannot be both set`;
    metadata.invalid('finalizers', detail);
  }
}

const UNQUALIFIED = 'name is neither a standard finalizer name nor is it fully qualified';

function isKubeFinalizer(finalizer: string): boolean {
  return finalizer.includes('/') || STANDARD_FINALIZERS.has(finalizer);
}

/** Validates a finalizer of the contents of a Namespace. */
export function validateFinalizer(spec: CheckedObject, field: string, finalizer: string): void {
  spec.problems(field, qualifiedNameProblems(finalizer), finalizer);
  if (!isKubeFinalizer(finalizer)) spec.invalid(field, UNQUALIFIED, finalizer);
}

/** Groups and kinds whose finalizers need no domain, as upstream. */
const UNRESTRICTED: ReadonlySet<string> = new Set([
  'admissionregistration.k8s.io',
  EXTENSIONS,
  'apiregistration.k8s.io',
  'coordination.k8s.io',
  'node.k8s.io',
  'policy',
]);

/** Validates finalizers of a built-in kind, which are standard names or have a domain. */
export function validateKubeFinalizers(
  { finalizers = [] }: DeepReadonly<ObjectMeta>,
  { custom, group, kind }: Pick<ResourceDefinition, 'custom' | 'group' | 'kind'>,
  subresource?: string,
): FieldError[] {
  const isEvent = group === '' && kind === 'Event';
  // As upstream, which does not validate the status of a CronJob.
  const isOfCronJob = kind === 'CronJob' && subresource === 'status';
  if (custom || isEvent || isOfCronJob || UNRESTRICTED.has(group)) return [];
  const errors: FieldError[] = [];
  for (const [index, finalizer] of finalizers.entries()) {
    if (isKubeFinalizer(finalizer)) continue;
    errors.push(fieldError.invalid(`metadata.finalizers[${index}]`, finalizer, UNQUALIFIED));
    if (errors.length === MAX_FIELD_ERRORS) break;
  }
  return errors;
}

/** Warnings of new finalizers of a custom resource, which need no domain. */
export function finalizerWarnings(object: StoredObject, previous?: StoredObject): string[] {
  const known = new Set([...STANDARD_FINALIZERS, ...(previous?.metadata.finalizers ?? [])]);
  return [...new Set(object.metadata.finalizers)]
    .filter((finalizer) => !known.has(finalizer) && !finalizer.includes('/'))
    .sort()
    .map((finalizer) => {
      const form = finalizer.includes('.') ? ' including a path (/)' : '';
      return `metadata.finalizers: ${JSON.stringify(finalizer)}: prefer a domain-qualified finalizer name${form} to avoid accidental conflicts with other finalizer writers`;
    });
}
