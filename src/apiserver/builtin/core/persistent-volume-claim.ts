import type { JsonObject } from '../../../util/json-value.ts';
import { isSet, objectIn, textIn } from '../../../util/json-value.ts';
import { qualifiedNameProblems } from '../../../api/object-names.ts';
import { compareQuantities } from '../../../api/quantity.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { textOf, valueAtPath } from '../../objects/field-path.ts';
import type {
  AdmissionHookContext,
  ApiObject,
  StoredObject,
} from '../../objects/resource-definition.ts';
import { AGE_COLUMN, NAME_COLUMN, column, field } from '../../table/column.ts';
import {
  ATTRIBUTES_CLASS,
  CLASS_ANNOTATION,
  STORAGE_CLASS_COLUMN,
  VOLUME_ANNOTATIONS,
  VOLUME_MODE,
  accessModes,
  volumePhase,
} from './volume-columns.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { defaultClassName } from '../shared/default-class.ts';
import { validateClaimUpdate } from './claim-update.ts';
import { requireAmountOf, validateClaimSpec } from '../shared/claim-spec.ts';
import { annotationWarnings, claimWarnings } from '../shared/warnings.ts';

export const PERSISTENT_VOLUME_CLAIM: BuiltinKind = {
  resource: 'persistentvolumeclaims',
  revalidatesName: 'object',
  returnsDeleted: true,
  defaults: { 'spec.volumeMode': 'Filesystem', 'status.phase': 'Pending' },
  disabledFields: ['status.healthStatus'],
  hooks: {
    admit: setStorageClass,
    requireAdmitted: requireResizable,
    prepareForCreate: (claim) => alignDataSources(claim),
    prepareForUpdate: (claim, previous, { subresource }) => {
      if (subresource === 'status') dropHealth(claim);
      else alignDataSources(claim, previous);
    },
  },
  validate: (claim) => validateClaimSpec(claim.in('spec')),
  validateUpdate: (next, previous, subresource) =>
    subresource === 'status' ? validateClaimStatus(next) : validateClaimUpdate(next, previous),
  columns: [
    NAME_COLUMN,
    column('Status', 'Phase of the claim.', volumePhase),
    field('Volume', 'spec.volumeName'),
    column('Capacity', 'Size of the bound volume.', (claim) => {
      if (textIn(objectIn(claim, 'spec') ?? {}, 'volumeName') === '') return '';
      return textOf(valueAtPath(claim, ['status', 'capacity', 'storage']), '0');
    }),
    column('Access Modes', 'Ways to mount the bound volume.', (claim) =>
      textIn(objectIn(claim, 'spec') ?? {}, 'volumeName') === ''
        ? ''
        : accessModes(objectIn(claim, 'status') ?? {}),
    ),
    STORAGE_CLASS_COLUMN,
    ATTRIBUTES_CLASS,
    AGE_COLUMN,
    VOLUME_MODE,
  ],
  warnings: (object) => {
    const claim = object;
    return [
      ...annotationWarnings(claim, { [CLASS_ANNOTATION]: VOLUME_ANNOTATIONS[CLASS_ANNOTATION] }),
      ...claimWarnings(claim.in('spec')),
    ];
  },
};

const IS_DEFAULT = [
  'storageclass.kubernetes.io/is-default-class',
  'storageclass.beta.kubernetes.io/is-default-class',
];

/** A new claim without a class gets the default one (admission plugin DefaultStorageClass). */
function setStorageClass(
  claim: ApiObject,
  previous: StoredObject | undefined,
  { list }: AdmissionHookContext,
): void {
  const spec = objectIn(claim, 'spec');
  if (previous || !spec || isSet(spec, 'storageClassName')) return;
  if (claim.metadata.annotations?.[CLASS_ANNOTATION] !== undefined) return;
  const classes = list({ group: 'storage.k8s.io', plural: 'storageclasses' });
  const name = defaultClassName(classes, IS_DEFAULT);
  if (name !== undefined) spec['storageClassName'] = name;
}

/** The admission plugin PersistentVolumeClaimResize. */
function requireResizable(
  claim: StoredObject,
  previous: StoredObject | undefined,
  { list, forbidden }: AdmissionHookContext,
): void {
  if (!previous || compareQuantities(sizeOf(claim), sizeOf(previous)) <= 0) return;
  if (textIn(objectIn(previous, 'status'), 'phase') !== 'Bound') {
    throw forbidden('Only bound persistent volume claims can be expanded');
  }
  const name = classOf(claim);
  const storageClass = list({ group: 'storage.k8s.io', plural: 'storageclasses' }).find(
    ({ metadata }) => metadata.name === name,
  );
  if (name === classOf(previous) && storageClass?.['allowVolumeExpansion'] === true) return;
  throw forbidden(
    'only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize',
  );
}

function sizeOf(claim: StoredObject): string {
  return textOf(valueAtPath(claim, ['spec', 'resources', 'requests', 'storage']), '0');
}

function classOf(claim: StoredObject): string {
  const { annotations } = claim.metadata;
  return annotations?.[CLASS_ANNOTATION] ?? textIn(objectIn(claim, 'spec'), 'storageClassName');
}

/** Drops the health of the volume, which a feature gate turns off. */
function dropHealth(claim: ApiObject): void {
  const { healthStatus: _, ...status } = objectIn(claim, 'status') ?? {};
  claim['status'] = status;
}

/**
 * The older name of the data source follows the newer one, and the other way round, if the source is in the same namespace.
 * The older name has claims and snapshots only.
 */
function alignDataSources(claim: ApiObject, previous?: StoredObject): void {
  const spec = objectIn(claim, 'spec');
  if (!spec) return;
  const before = objectIn(previous, 'spec');
  const isOfOther = textIn(objectIn(spec, 'dataSourceRef'), 'namespace') !== '';
  // A feature gate turns sources in other namespaces off.
  if (isOfOther && !isSet(before, 'dataSourceRef')) delete spec['dataSourceRef'];
  const source = objectIn(spec, 'dataSource');
  const wasSet = isSet(before, 'dataSource') || isSet(before, 'dataSourceRef');
  if (source && !wasSet && !isSet(spec, 'dataSourceRef') && !isOlderSource(source)) {
    delete spec['dataSource'];
  }
  const { dataSource, dataSourceRef } = spec;
  if (dataSource !== undefined && dataSourceRef === undefined) {
    spec['dataSourceRef'] = dataSource;
    return;
  }
  const ref = objectIn(spec, 'dataSourceRef');
  if (dataSource === undefined && ref && textIn(ref, 'namespace') === '') {
    const { namespace: _, ...local } = ref;
    spec['dataSource'] = local;
  }
}

function isOlderSource(source: JsonObject): boolean {
  const [group, kind] = [textIn(source, 'apiGroup'), textIn(source, 'kind')];
  return (
    (group === '' && kind === 'PersistentVolumeClaim') ||
    (group === 'snapshot.storage.k8s.io' && kind === 'VolumeSnapshot')
  );
}

const RESIZES = [
  'ControllerResizeInProgress',
  'ControllerResizeInfeasible',
  'NodeResizeInProgress',
  'NodeResizeInfeasible',
  'NodeResizePending',
].sort();

function validateClaimStatus(claim: CheckedObject): void {
  const status = claim.in('status');
  const isResource = (field: string, name: string) => {
    const problems = qualifiedNameProblems(name);
    status.problems(field, problems, name);
    const isOther = name !== 'storage' && (!name.includes('/') || name.includes('kubernetes.io/'));
    if (problems.length === 0 && isOther) status.notSupported(field, ['storage'], name);
    return problems.length === 0 && !isOther;
  };
  for (const [name, resize] of Object.entries(status.in('allocatedResourceStatuses').value)) {
    const field = 'allocatedResourceStatuses';
    isResource(field, name);
    if (!RESIZES.includes(String(resize))) status.notSupported(field, RESIZES, name);
  }
  for (const field of ['capacity', 'allocatedResources']) {
    for (const [name, amount] of Object.entries(status.in(field).value)) {
      if (field !== 'capacity' && !isResource(field, name)) continue;
      requireAmountOf(status, `${field}[${name}]`, String(amount));
    }
  }
}
