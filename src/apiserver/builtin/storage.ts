import { isSet, objectIn, textIn } from '../../util/json-value.ts';
import { equalJson } from '../../api/equal.ts';
import { timestamp } from '../../api/conditions.ts';
import type { ApiObject, StoredObject } from '../objects/resource-definition.ts';
import { checked } from '../objects/checked-object.ts';
import type { CheckedObject } from '../objects/checked-object.ts';
import type { KindTraits } from './definition.ts';
import { compareQuantities } from '../../api/quantity.ts';

const ACCESS_MODES = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod'];

export const VOLUME_CLAIM: KindTraits = {
  returnsDeleted: true,
  defaults: { 'spec.volumeMode': 'Filesystem', 'status.phase': 'Pending' },
  hooks: {
    prepareForUpdate: alignDataSources,
    validate: checked((claim) => validateClaimSpec(claim.in('spec'))),
    validateUpdate: checked(validateClaimUpdate),
  },
};

/** The older name of the data source follows the newer one, and the other way round. */
function alignDataSources(claim: ApiObject): void {
  const spec = objectIn(claim, 'spec');
  if (!spec) return;
  const { dataSource, dataSourceRef } = spec;
  if (dataSource !== undefined && dataSourceRef === undefined) spec['dataSourceRef'] = dataSource;
}

/** Reports what is wrong with the spec of a claim. */
export function validateClaimSpec(spec: CheckedObject): void {
  validateAccessModes(spec, 'at least 1 access mode is required');
  const size = spec.in('resources').in('requests').value['storage'];
  if (size === undefined) spec.required('resources[storage]');
  else if (typeof size === 'string' && compareQuantities(size, '0') <= 0) {
    spec.invalid('resources[storage]', 'must be greater than zero', size);
  }
  spec.requireOneOf('volumeMode', ['Block', 'Filesystem']);
}

function validateAccessModes(spec: CheckedObject, absent?: string): void {
  const modes = spec.list('accessModes');
  if (modes.length === 0) spec.required('accessModes', absent);
  for (const mode of modes) {
    if (typeof mode === 'string' && ACCESS_MODES.includes(mode)) continue;
    spec.notSupported('accessModes', ACCESS_MODES, mode);
  }
  if (modes.includes('ReadWriteOncePod') && modes.some((mode) => mode !== 'ReadWriteOncePod')) {
    spec.forbidden('accessModes', 'may not use ReadWriteOncePod with other access modes');
  }
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
  if (equalJson(after, was)) return;
  next.forbidden(
    'spec',
    'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims',
  );
}

/** Fields of the spec of a volume that are no volume sources. */
const NO_SOURCE: ReadonlySet<string> = new Set([
  'accessModes',
  'capacity',
  'claimRef',
  'mountOptions',
  'nodeAffinity',
  'persistentVolumeReclaimPolicy',
  'storageClassName',
  'volumeAttributesClassName',
  'volumeMode',
]);

export const PERSISTENT_VOLUME: KindTraits = {
  returnsDeleted: true,
  defaults: {
    'spec.persistentVolumeReclaimPolicy': 'Retain',
    'spec.volumeMode': 'Filesystem',
    'status.phase': 'Pending',
  },
  hooks: {
    applyDefaults: (volume) => {
      const spec = objectIn(volume, 'spec');
      if (!spec) return;
      const hostPath = objectIn(spec, 'hostPath');
      if (hostPath && !isSet(hostPath, 'type')) hostPath['type'] = '';
    },
    prepareForCreate: (volume, { now }) => markPhase(volume, undefined, now),
    prepareForUpdate: (volume, previous, { now }) => markPhase(volume, previous, now),
    validate: checked(validateVolume),
  },
};

/** Records when the phase changed. */
function markPhase(volume: ApiObject, previous: StoredObject | undefined, now: number): void {
  const status = objectIn(volume, 'status');
  const before = objectIn(previous, 'status');
  if (!status || textIn(status, 'phase') === textIn(before, 'phase')) return;
  volume['status'] = { ...status, lastPhaseTransitionTime: timestamp(now) };
}

function validateVolume(volume: CheckedObject): void {
  const spec = volume.in('spec');
  validateAccessModes(spec);
  const { value: capacity } = spec.in('capacity');
  if (Object.keys(capacity).length === 0) spec.required('capacity');
  if (Object.keys(capacity).join() !== 'storage') {
    spec.notSupported('capacity', ['storage'], capacity);
  }
  const storage = textIn(capacity, 'storage');
  if (storage !== '' && compareQuantities(storage, '0') <= 0) {
    spec.invalid('capacity[storage]', 'must be greater than zero', storage);
  }
  const hostPath = spec.get('hostPath');
  hostPath?.requireText('path');
  if (hostPath?.text('path').split('/').includes('..')) {
    hostPath.invalid('path', "must not contain '..'");
  }
  spec.requireOneOf('persistentVolumeReclaimPolicy', ['Delete', 'Recycle', 'Retain']);
  const sources = Object.keys(spec.value).filter((field) => !NO_SOURCE.has(field));
  for (const field of sources.slice(1)) {
    spec.forbidden(field, 'may not specify more than 1 volume type');
  }
  if (sources.length === 0) spec.required('', 'must specify a volume type');
  spec.requireOneOf('volumeMode', ['Block', 'Filesystem']);
}
