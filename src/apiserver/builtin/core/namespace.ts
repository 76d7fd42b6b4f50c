import { typedText } from '../../../api/field-error.ts';
import { listIn, objectIn, setDefault } from '../../../util/json-value.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { fieldsAt } from '../../objects/field-path.ts';
import { validateFinalizer } from '../../objects/finalizers.ts';
import type { ApiObject, HookContext, StoredObject } from '../../objects/resource-definition.ts';
import { columns, field } from '../../table/column.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

export const NAMESPACE: BuiltinKind = {
  resource: 'namespaces',
  revalidatesName: 'object',
  nameFormat: 'dns1123Label',
  selectableFields: {
    ...fieldsAt('status.phase'),
    // Its own name without `metadata`: an old mistake that clients rely on.
    name: ({ metadata }) => metadata.name,
  },
  hooks: {
    applyDefaults,
    prepareForCreate,
    prepareForUpdate,
    markDeleted,
    blocksRemoval: (namespace) => listIn(objectIn(namespace, 'spec'), 'finalizers').length > 0,
  },
  validate: (namespace, previous) => {
    const spec = namespace.in('spec');
    const finalizers = previous ? [] : spec.list('finalizers').map(String);
    for (const finalizer of finalizers) validateFinalizer(spec, 'finalizers', finalizer);
  },
  validateUpdate: (namespace, _previous, subresource) => {
    if (subresource === 'status') validatePhase(namespace);
    if (subresource !== 'finalize') return;
    const spec = namespace.in('spec');
    for (const [index, finalizer] of spec.list('finalizers').map(String).entries()) {
      validateFinalizer(spec, `finalizers[${index}]`, finalizer);
    }
  },
  columns: columns(field('Status', 'status.phase')),
};

function validatePhase(namespace: CheckedObject<StoredObject>): void {
  const isDeleted = namespace.value.metadata.deletionTimestamp !== undefined;
  const phase = namespace.in('status').text('phase');
  const expected = isDeleted ? 'Terminating' : 'Active';
  if (phase === expected) return;
  const when = `\`deletionTimestamp\` is ${isDeleted ? 'not ' : ''}empty`;
  const why = `may only be '${expected}' if ${when}`;
  namespace.invalid('status.Phase', why, typedText(phase));
}

/** While it is there, the contents of the namespace have not been removed. */
const FINALIZER = 'kubernetes';

/** A generated name is not known before the create. */
function labelWithName({ metadata }: ApiObject): void {
  if (!metadata.name) return;
  metadata.labels = { ...metadata.labels, 'kubernetes.io/metadata.name': metadata.name };
}

function applyDefaults(namespace: ApiObject): void {
  labelWithName(namespace);
  const status = objectIn(namespace, 'status');
  if (status) setDefault(status, 'phase', 'Active');
}

function prepareForCreate(namespace: ApiObject): void {
  labelWithName(namespace);
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
  { subresource }: HookContext,
): void {
  if (subresource === 'finalize') {
    namespace['status'] = objectIn(previous, 'status') ?? {};
    return;
  }
  const { finalizers: _, ...spec } = objectIn(namespace, 'spec') ?? {};
  const finalizers = listIn(objectIn(previous, 'spec'), 'finalizers');
  namespace['spec'] = { ...spec, ...(finalizers.length > 0 && { finalizers }) };
}

function markDeleted(namespace: ApiObject): void {
  namespace['status'] = { ...objectIn(namespace, 'status'), phase: 'Terminating' };
}
