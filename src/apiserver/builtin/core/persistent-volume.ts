import { isSet, objectIn, textIn } from '../../../util/json-value.ts';
import { isRecord } from '../../../util/values.ts';
import { timestamp } from '../../../api/conditions.ts';
import { equalJson } from '../../../api/equal.ts';
import { CheckedObject } from '../../objects/checked-object.ts';
import type { ApiObject, StoredObject } from '../../objects/resource-definition.ts';
import { AGE_COLUMN, NAME_COLUMN, column, field } from '../../table/column.ts';
import {
  ATTRIBUTES_CLASS,
  STORAGE_CLASS_COLUMN,
  VOLUME_ANNOTATIONS,
  VOLUME_MODE,
  accessModes,
  volumePhase,
} from './volume-columns.ts';
import { structDiff } from '../shared/internal-structs.ts';
import { EXPANSION, VOLUME_SOURCES, validateVolumeSpec } from './volume-spec.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { VOLUMES, annotationWarnings, nodeSelectorWarnings } from '../shared/warnings.ts';

export const PERSISTENT_VOLUME: BuiltinKind = {
  resource: 'persistentvolumes',
  revalidatesName: 'object',
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
  },
  validate: validateVolume,
  validateUpdate: (next, previous, subresource) => {
    if (subresource === undefined) validateVolumeUpdate(next, previous);
  },
  columns: [
    NAME_COLUMN,
    field('Capacity', 'spec.capacity.storage', '0'),
    column('Access Modes', 'Ways to mount the volume.', (volume) =>
      accessModes(objectIn(volume, 'spec') ?? {}),
    ),
    field('Reclaim Policy', 'spec.persistentVolumeReclaimPolicy'),
    column('Status', 'Phase of the volume.', volumePhase),
    column('Claim', 'Namespace and name of the claim.', (volume) => {
      const claim = objectIn(objectIn(volume, 'spec') ?? {}, 'claimRef');
      return claim ? `${textIn(claim, 'namespace')}/${textIn(claim, 'name')}` : '';
    }),
    STORAGE_CLASS_COLUMN,
    ATTRIBUTES_CLASS,
    field('Reason', 'status.reason'),
    AGE_COLUMN,
    VOLUME_MODE,
  ],
  warnings: volumeWarnings,
};

/** Records when the phase changed, unless the client does. */
function markPhase(volume: ApiObject, previous: StoredObject | undefined, now: number): void {
  const status = objectIn(volume, 'status');
  const before = objectIn(previous, 'status');
  if (!status) return;
  const field = 'lastPhaseTransitionTime';
  const [time, former] = [textIn(status, field), textIn(before, field)];
  const isSame = textIn(status, 'phase') === textIn(before, 'phase');
  const isKept = isSame ? time !== '' || former === '' : time !== '' && time !== former;
  if (!isKept) volume['status'] = { ...status, [field]: isSame ? former : timestamp(now) };
}

function validateVolume(volume: CheckedObject): void {
  const spec = volume.in('spec');
  validateMountOptions(volume);
  validateVolumeSpec(spec, volume.in('metadata').text('name'));
}

/** Sources whose mount options an annotation may set. */
const WITH_MOUNT_OPTIONS = VOLUME_SOURCES.filter(
  (field) =>
    !/^(?:hostPath|flocker|fc|flexVolume|portworxVolume|scaleIO|local|storageos|csi)$/.test(field),
);

const MOUNT_OPTIONS = 'volume.beta.kubernetes.io/mount-options';

function validateMountOptions(volume: CheckedObject): void {
  const annotations = volume.in('metadata').in('annotations');
  const spec = volume.in('spec');
  if (!annotations.has(MOUNT_OPTIONS) || WITH_MOUNT_OPTIONS.some((field) => spec.get(field)))
    return;
  annotations.forbidden(MOUNT_OPTIONS, 'may not specify mount options for this volume type');
}

const STABLE_LABELS: ReadonlyMap<unknown, string> = new Map([
  ['failure-domain.beta.kubernetes.io/zone', 'topology.kubernetes.io/zone'],
  ['failure-domain.beta.kubernetes.io/region', 'topology.kubernetes.io/region'],
  ['beta.kubernetes.io/os', 'kubernetes.io/os'],
  ['beta.kubernetes.io/arch', 'kubernetes.io/arch'],
  ['beta.kubernetes.io/instance-type', 'node.kubernetes.io/instance-type'],
]);

/** Whether a value is as it was, except that its labels may have their stable names. */
function isSameOrStable(is: unknown, was: unknown): boolean {
  if (Array.isArray(is) && Array.isArray(was)) {
    return is.length === was.length && is.every((item, index) => isSameOrStable(item, was[index]));
  }
  if (!isRecord(is) || !isRecord(was)) {
    return is === was || (is !== undefined && is === STABLE_LABELS.get(was));
  }
  return Object.keys({ ...is, ...was }).every((key) => isSameOrStable(is[key], was[key]));
}

/** The source and the mode of a volume do not change. */
function validateVolumeUpdate(next: CheckedObject, previous: StoredObject): void {
  const spec = next.in('spec');
  const before = objectIn(previous, 'spec') ?? {};
  const csi = objectIn(spec.value, 'csi');
  // A Secret for expansion may be added.
  const isAdded = csi && isSet(before, 'csi') && !isSet(objectIn(before, 'csi'), EXPANSION);
  const after = isAdded ? { ...spec.value, csi: { ...csi, [EXPANSION]: undefined } } : spec.value;
  const diff = structDiff('core.v1.PersistentVolumeSource', before, after);
  if (diff !== '') {
    const why = 'spec.persistentvolumesource is immutable after creation';
    spec.forbidden('persistentvolumesource', `${why}\n${diff}`);
  }
  if (!equalJson(spec.value['volumeMode'], before['volumeMode'])) {
    next.invalid('volumeMode', 'field is immutable', spec.value['volumeMode'] ?? null);
  }
  const [affinity, was] = [spec.value['nodeAffinity'], before['nodeAffinity']];
  if (was !== undefined && !isSameOrStable(affinity, was)) {
    const why = 'field is immutable, except for updating from beta label to GA';
    next.invalid('nodeAffinity', why, affinity ?? null);
  }
  if (isSet(before, 'volumeAttributesClassName') && !spec.has('volumeAttributesClassName')) {
    spec.forbidden('volumeAttributesClassName', 'update from non-nil value to nil is forbidden');
  }
}

type Texts = Readonly<Record<string, string>>;

/** The sources of PersistentVolumes among them, with their names in messages. */
const PERSISTENT_SOURCES: Texts = {
  cephfs: 'cephfs',
  photonPersistentDisk: 'photonPersistentDisk',
  scaleIO: 'scaleIO',
  storageos: 'storageOS',
  glusterfs: 'glusterfs',
  rbd: 'rbd',
};

function volumeWarnings(volume: CheckedObject): string[] {
  const spec = volume.in('spec');
  const policy = 'persistentVolumeReclaimPolicy';
  return [
    ...annotationWarnings(volume, VOLUME_ANNOTATIONS),
    ...(spec.text(policy) === 'Recycle'
      ? [
          `${spec.at(policy)}: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.`,
        ]
      : []),
    ...nodeSelectorWarnings(spec.in('nodeAffinity').in('required')),
    ...Object.entries(PERSISTENT_SOURCES)
      .filter(([source]) => spec.has(source))
      .map(([source, name]) => `${spec.at(name)}: ${VOLUMES[source]}`),
  ];
}
