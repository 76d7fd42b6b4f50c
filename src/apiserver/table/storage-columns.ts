import { textOf, valueAtPath } from '../objects/field-path.ts';
import type { StoredObject } from '../objects/resource-definition.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { listIn, objectIn, objectsIn, textIn, textsIn } from '../../util/json-value.ts';
import type { KindColumns } from './column.ts';
import {
  AGE_COLUMN,
  NAME_COLUMN,
  WIDE,
  column,
  columns,
  count,
  field,
  flagColumn,
} from './column.ts';

const ACCESS_MODES = {
  ReadWriteOnce: 'RWO',
  ReadOnlyMany: 'ROX',
  ReadWriteMany: 'RWX',
  ReadWriteOncePod: 'RWOP',
} as const;

function accessModes(parent: JsonObject): string {
  const modes = listIn(parent, 'accessModes');
  return Object.entries(ACCESS_MODES)
    .flatMap(([mode, short]) => (modes.includes(mode) ? [short] : []))
    .join(',');
}

function volumePhase(object: StoredObject): string {
  return object.metadata.deletionTimestamp
    ? 'Terminating'
    : textIn(objectIn(object, 'status') ?? {}, 'phase');
}

const STORAGE_CLASS = column(
  'StorageClass',
  'Name of the StorageClass.',
  (object) =>
    object.metadata.annotations?.['volume.beta.kubernetes.io/storage-class'] ??
    textIn(objectIn(object, 'spec') ?? {}, 'storageClassName'),
);
const ATTRIBUTES_CLASS = field(
  'VolumeAttributesClass',
  'spec.volumeAttributesClassName',
  '<unset>',
);
const VOLUME_MODE = field('VolumeMode', 'spec.volumeMode', '<unset>', WIDE);

export const STORAGE_COLUMNS: KindColumns = {
  persistentvolumes: [
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
    STORAGE_CLASS,
    ATTRIBUTES_CLASS,
    field('Reason', 'status.reason'),
    AGE_COLUMN,
    VOLUME_MODE,
  ],
  persistentvolumeclaims: [
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
    STORAGE_CLASS,
    ATTRIBUTES_CLASS,
    AGE_COLUMN,
    VOLUME_MODE,
  ],
  'storage.k8s.io/storageclasses': columns(
    field('Provisioner', 'provisioner'),
    field('ReclaimPolicy', 'reclaimPolicy', 'Delete'),
    field('VolumeBindingMode', 'volumeBindingMode', 'Immediate'),
    { ...flagColumn('AllowVolumeExpansion', 'allowVolumeExpansion'), type: 'string' },
  ),
  'storage.k8s.io/volumeattributesclasses': columns(field('DriverName', 'driverName')),
  'storage.k8s.io/volumeattachments': columns(
    field('Attacher', 'spec.attacher', '', { format: 'name' }),
    field('PV', 'spec.source.persistentVolumeName'),
    field('Node', 'spec.nodeName'),
    flagColumn('Attached', 'status.attached'),
  ),
  'storage.k8s.io/csidrivers': columns(
    flagColumn('AttachRequired', 'spec.attachRequired', true),
    flagColumn('PodInfoOnMount', 'spec.podInfoOnMount'),
    flagColumn('StorageCapacity', 'spec.storageCapacity'),
    column('TokenRequests', 'Audiences of the tokens that the driver needs.', (driver) => {
      const { tokenRequests } = objectIn(driver, 'spec') ?? {};
      if (!Array.isArray(tokenRequests)) return '<unset>';
      return objectsIn(objectIn(driver, 'spec') ?? {}, 'tokenRequests')
        .map((request) => textIn(request, 'audience'))
        .join(',');
    }),
    flagColumn('RequiresRepublish', 'spec.requiresRepublish'),
    column(
      'Modes',
      'Volume modes of the driver.',
      (driver) =>
        textsIn(objectIn(driver, 'spec') ?? {}, 'volumeLifecycleModes').join(',') || '<none>',
    ),
  ),
  'storage.k8s.io/csinodes': columns(count('Drivers', 'spec.drivers')),
};
