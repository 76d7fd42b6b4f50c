import type { JsonObject } from '../../../util/json-value.ts';
import { listIn, objectIn, textIn } from '../../../util/json-value.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';
import { WIDE, column, field } from '../../table/column.ts';

export const CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class';

export const VOLUME_ANNOTATIONS = {
  [CLASS_ANNOTATION]: 'deprecated since v1.8; use "storageClassName" attribute instead',
  'volume.beta.kubernetes.io/mount-options':
    'deprecated since v1.31; use "mountOptions" attribute instead',
};

const SHORT_ACCESS_MODES = {
  ReadWriteOnce: 'RWO',
  ReadOnlyMany: 'ROX',
  ReadWriteMany: 'RWX',
  ReadWriteOncePod: 'RWOP',
} as const;

export function accessModes(parent: JsonObject): string {
  const modes = listIn(parent, 'accessModes');
  return Object.entries(SHORT_ACCESS_MODES)
    .flatMap(([mode, short]) => (modes.includes(mode) ? [short] : []))
    .join(',');
}

export function volumePhase(object: StoredObject): string {
  return object.metadata.deletionTimestamp
    ? 'Terminating'
    : textIn(objectIn(object, 'status') ?? {}, 'phase');
}

export const STORAGE_CLASS_COLUMN = column(
  'StorageClass',
  'Name of the StorageClass.',
  (object) =>
    object.metadata.annotations?.['volume.beta.kubernetes.io/storage-class'] ??
    textIn(objectIn(object, 'spec') ?? {}, 'storageClassName'),
);

export const ATTRIBUTES_CLASS = field(
  'VolumeAttributesClass',
  'spec.volumeAttributesClassName',
  '<unset>',
);

export const VOLUME_MODE = field('VolumeMode', 'spec.volumeMode', '<unset>', WIDE);
