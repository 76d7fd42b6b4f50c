import type { JsonObject } from '../../../util/json-value.ts';
import { isSet, objectIn, textIn } from '../../../util/json-value.ts';
import { equalJson } from '../../../api/equal.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { textOf, valueAtPath } from '../../objects/field-path.ts';
import type { ApiObject, StoredObject } from '../../objects/resource-definition.ts';
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
import { validateClaimSpec } from '../shared/claim-spec.ts';
import { annotationWarnings, claimWarnings } from '../shared/warnings.ts';

export const PERSISTENT_VOLUME_CLAIM: BuiltinKind = {
  resource: 'persistentvolumeclaims',
  returnsDeleted: true,
  defaults: { 'spec.volumeMode': 'Filesystem', 'status.phase': 'Pending' },
  hooks: {
    prepareForCreate: (claim) => alignDataSources(claim),
    prepareForUpdate: (claim, previous) => alignDataSources(claim, previous),
  },
  validate: (claim) => validateClaimSpec(claim.in('spec')),
  validateUpdate: validateClaimUpdate,
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

/**
 * The older name of the data source follows the newer one, and the other way round, if the source is in the same namespace.
 * The older name has claims and snapshots only.
 */
function alignDataSources(claim: ApiObject, previous?: StoredObject): void {
  const spec = objectIn(claim, 'spec');
  if (!spec) return;
  // A feature gate turns sources in other namespaces off.
  if (textIn(objectIn(spec, 'dataSourceRef'), 'namespace') !== '') delete spec['dataSourceRef'];
  const source = objectIn(spec, 'dataSource');
  const before = objectIn(previous, 'spec');
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
  if (dataSource === undefined && ref) {
    spec['dataSource'] = { ...ref };
  }
}

function isOlderSource(source: JsonObject): boolean {
  const [group, kind] = [textIn(source, 'apiGroup'), textIn(source, 'kind')];
  return (
    (group === '' && kind === 'PersistentVolumeClaim') ||
    (group === 'snapshot.storage.k8s.io' && kind === 'VolumeSnapshot')
  );
}

/** A claim may be bound once; a bound claim may grow. */
function validateClaimUpdate(next: CheckedObject, previous: StoredObject): void {
  const isBound = next.in('status').text('phase') === 'Bound';
  const before = objectIn(previous, 'spec') ?? {};
  const after = { ...next.in('spec').value };
  if (!isSet(before, 'volumeName')) delete after['volumeName'];
  const was = { ...before };
  if (isBound) {
    for (const spec of [was, after]) {
      delete spec['resources'];
      delete spec['volumeAttributesClassName'];
    }
  }
  if (!equalJson(after['volumeMode'], was['volumeMode'])) {
    next.invalid('volumeMode', 'field is immutable', after['volumeMode'] ?? null);
  }
  if (equalJson(after, was)) return;
  next.forbidden(
    'spec',
    'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims',
  );
}
