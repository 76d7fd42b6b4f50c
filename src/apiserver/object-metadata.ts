import type { DeepReadonly, ObjectMeta, OwnerReference } from '../api/object.ts';
import { labelValueProblems, nameProblems, qualifiedNameProblems } from './object-names.ts';
import type { NameFormat, ResourceDefinition, StoredObject } from './resource-definition.ts';
import type { FieldError } from '../api/field-error.ts';
import { fieldError } from '../api/field-error.ts';

/** Maximum total size of the keys and values of all annotations. */
const MAX_ANNOTATIONS_BYTES = 256 * 1024;

const ORPHAN = 'orphan';
const FOREGROUND = 'foregroundDeletion';
const STANDARD_FINALIZERS: ReadonlySet<string> = new Set([ORPHAN, FOREGROUND, 'kubernetes']);

/** Validates the metadata of an object. The decoder has checked the types. */
export function validateMetadata(
  metadata: DeepReadonly<ObjectMeta>,
  namespaced: boolean,
  nameFormat: NameFormat,
): FieldError[] {
  const { name, generateName, namespace, labels, annotations } = metadata;
  const errors: FieldError[] = [];
  if (generateName) {
    // A generateName may end with a dash.
    const complete = generateName.replace(/(?<=.)-$/s, 'a');
    for (const problem of nameProblems(complete, nameFormat)) {
      errors.push(fieldError.invalid('metadata.generateName', generateName, problem));
    }
  }
  if (!name) {
    errors.push(fieldError.required('metadata.name', 'name or generateName is required'));
  } else {
    for (const problem of nameProblems(name, nameFormat)) {
      errors.push(fieldError.invalid('metadata.name', name, problem));
    }
  }
  if (namespaced && !namespace) errors.push(fieldError.required('metadata.namespace'));
  if (!namespaced && namespace) {
    errors.push(fieldError.forbidden('metadata.namespace', 'not allowed on this type'));
  }
  return [
    ...errors,
    ...validateLabels(labels),
    ...validateAnnotations(annotations),
    ...validateOwners(metadata.ownerReferences),
    ...validateFinalizers(metadata.finalizers),
  ];
}

export function validateMetadataUpdate(
  next: DeepReadonly<ObjectMeta>,
  previous: DeepReadonly<ObjectMeta>,
): FieldError[] {
  const errors: FieldError[] = [];
  if (previous.deletionTimestamp) {
    const present = new Set(previous.finalizers);
    const added = (next.finalizers ?? []).filter((finalizer) => !present.has(finalizer)).sort();
    if (added.length > 0) {
      const list = `[]string{${added.map((finalizer) => JSON.stringify(finalizer)).join(', ')}}`;
      errors.push(
        fieldError.forbidden(
          'metadata.finalizers',
          `no new finalizers can be added if the object is being deleted, found new finalizers ${list}`,
        ),
      );
    }
  }
  for (const field of [
    'name',
    'namespace',
    'uid',
    'deletionTimestamp',
    'deletionGracePeriodSeconds',
  ] as const) {
    if (next[field] !== previous[field]) {
      errors.push(
        fieldError.invalid(`metadata.${field}`, next[field] ?? null, 'field is immutable'),
      );
    }
  }
  return errors;
}

/** Whether finalizers keep a deleted object. */
export function hasFinalizers({ metadata }: StoredObject): boolean {
  return (metadata.finalizers?.length ?? 0) > 0;
}

/** Returns the finalizers of an object after a deletion with this policy. */
export function deletionFinalizers(
  finalizers: readonly string[] = [],
  policy: string | undefined,
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
      return [...finalizers];
  }
}

function validateLabels(labels: ObjectMeta['labels'] = {}): FieldError[] {
  const path = 'metadata.labels';
  const errors: FieldError[] = [];
  for (const [key, value] of Object.entries(labels)) {
    for (const problem of qualifiedNameProblems(key)) {
      errors.push(fieldError.invalid(path, key, problem));
    }
    for (const problem of labelValueProblems(value)) {
      errors.push(fieldError.invalid(path, value, problem));
    }
  }
  return errors;
}

function validateAnnotations(annotations: ObjectMeta['annotations'] = {}): FieldError[] {
  let bytes = 0;
  const errors: FieldError[] = [];
  for (const [key, value] of Object.entries(annotations)) {
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
    for (const problem of qualifiedNameProblems(key.toLowerCase())) {
      errors.push(fieldError.invalid('metadata.annotations', key, problem));
    }
  }
  if (bytes > MAX_ANNOTATIONS_BYTES) {
    errors.push(fieldError.tooLong('metadata.annotations', MAX_ANNOTATIONS_BYTES));
  }
  return errors;
}

function validateOwners(owners: readonly DeepReadonly<OwnerReference>[] = []): FieldError[] {
  const path = 'metadata.ownerReferences';
  const errors: FieldError[] = [];
  let controller: string | undefined;
  for (const [index, owner] of owners.entries()) {
    const { apiVersion, kind, name, uid } = owner;
    for (const [field, value] of Object.entries({ apiVersion, kind, name, uid })) {
      if (value) continue;
      errors.push(fieldError.required(`${path}[${index}].${field}`, 'must not be empty'));
    }
    if (apiVersion === 'v1' && kind === 'Event') {
      errors.push(
        fieldError.invalid(
          `${path}[${index}]`,
          owner,
          '/v1, Kind=Event is disallowed from being an owner',
        ),
      );
    }
    if (owner.controller !== true) continue;
    const current = `${kind}/${name}`;
    if (controller !== undefined) {
      errors.push(
        fieldError.invalid(
          path,
          owners,
          `Only one reference can have Controller set to true. Found "true" in references for ${controller} and ${current}`,
        ),
      );
    }
    controller ??= current;
  }
  return errors;
}

/** Validates finalizers of a built-in kind, which are standard names or have a domain. As upstream, Leases may have others. */
export function validateKubeFinalizers(
  { finalizers = [] }: DeepReadonly<ObjectMeta>,
  { custom, group }: Pick<ResourceDefinition, 'custom' | 'group'>,
): FieldError[] {
  if (custom || group === 'coordination.k8s.io' || group === 'apiextensions.k8s.io') return [];
  return finalizers.flatMap((finalizer, index) =>
    finalizer.includes('/') || STANDARD_FINALIZERS.has(finalizer)
      ? []
      : [
          fieldError.invalid(
            `metadata.finalizers[${index}]`,
            finalizer,
            'name is neither a standard finalizer name nor is it fully qualified',
          ),
        ],
  );
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

function validateFinalizers(finalizers: readonly string[] = []): FieldError[] {
  const path = 'metadata.finalizers';
  const errors = finalizers.flatMap((finalizer) =>
    qualifiedNameProblems(finalizer).map((problem) => fieldError.invalid(path, finalizer, problem)),
  );
  if (finalizers.includes(ORPHAN) && finalizers.includes(FOREGROUND)) {
    errors.push(
      fieldError.invalid(
        path,
        finalizers,
        `finalizer ${ORPHAN} and ${FOREGROUND} cannot be both set`,
      ),
    );
  }
  return errors;
}
