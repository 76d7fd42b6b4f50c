import type { ApiObject, StoredObject } from '../resource-definition.ts';
import type { FieldError } from '../../api/field-error.ts';
import type { KindTraits } from './definition.ts';
import { listIn, objectIn, setDefault, textIn } from './fields.ts';
import { Findings } from './findings.ts';

/** While it is there, the contents of the namespace have not been removed. */
const FINALIZER = 'kubernetes';

export const NAMESPACE: KindTraits = {
  nameFormat: 'dns1123Label',
  selectableFields: {
    'status.phase': phaseOf,
    // Its own name without `metadata`: an old mistake that clients rely on.
    name: ({ metadata }) => metadata.name,
  },
  hooks: {
    applyDefaults,
    prepareForCreate,
    prepareForUpdate,
    validate,
    markDeleted,
    heldBack: (namespace) => listIn(objectIn(namespace, 'spec'), 'finalizers').length > 0,
  },
};

function phaseOf(namespace: StoredObject): string {
  return textIn(objectIn(namespace, 'status'), 'phase');
}

function applyDefaults(namespace: ApiObject): void {
  const { metadata } = namespace;
  if (metadata.name) {
    metadata.labels = { ...metadata.labels, 'kubernetes.io/metadata.name': metadata.name };
  }
  const status = objectIn(namespace, 'status');
  if (status) setDefault(status, 'phase', 'Active');
}

function prepareForCreate(namespace: ApiObject): void {
  const spec = objectIn(namespace, 'spec') ?? {};
  const finalizers = listIn(spec, 'finalizers');
  namespace['spec'] = {
    ...spec,
    finalizers: finalizers.includes(FINALIZER) ? finalizers : [...finalizers, FINALIZER],
  };
  namespace['status'] = { phase: 'Active' };
}

/** Only `/finalize` changes the finalizers of the spec. */
function prepareForUpdate(
  namespace: ApiObject,
  previous: StoredObject,
  { subresource }: { readonly subresource: string | undefined },
): void {
  if (subresource === 'finalize') {
    namespace['status'] = objectIn(previous, 'status') ?? {};
    return;
  }
  const { finalizers: _, ...spec } = objectIn(namespace, 'spec') ?? {};
  const finalizers = listIn(objectIn(previous, 'spec'), 'finalizers');
  namespace['spec'] = { ...spec, ...(finalizers.length > 0 ? { finalizers } : {}) };
}

function validate(namespace: StoredObject): readonly FieldError[] {
  const findings = new Findings();
  const phase = phaseOf(namespace);
  const isDeleted = namespace.metadata.deletionTimestamp !== undefined;
  const expected = isDeleted ? 'Terminating' : 'Active';
  if (phase !== expected) {
    findings.invalid(
      'status.Phase',
      phase,
      isDeleted
        ? "may only be 'Terminating' if `deletionTimestamp` is not empty"
        : "may only be 'Active' if `deletionTimestamp` is empty",
    );
  }
  return findings.errors;
}

function markDeleted(namespace: ApiObject): void {
  namespace['status'] = { ...objectIn(namespace, 'status'), phase: 'Terminating' };
}
