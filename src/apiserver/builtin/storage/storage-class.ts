import { columns, field, flagColumn } from '../../table/column.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { NODE_LABELS } from '../shared/warnings.ts';

export const STORAGE_CLASS: BuiltinKind = {
  resource: 'storage.k8s.io/storageclasses',
  returnsDeleted: true,
  defaults: { reclaimPolicy: 'Delete', volumeBindingMode: 'Immediate' },
  immutable: ['parameters', 'provisioner', 'reclaimPolicy', 'volumeBindingMode'],
  columns: columns(
    field('Provisioner', 'provisioner'),
    field('ReclaimPolicy', 'reclaimPolicy', 'Delete'),
    field('VolumeBindingMode', 'volumeBindingMode', 'Immediate'),
    { ...flagColumn('AllowVolumeExpansion', 'allowVolumeExpansion'), type: 'string' },
  ),
  warnings: (object) =>
    object
      .items('allowedTopologies')
      .flatMap((topology) => topology.items('matchLabelExpressions'))
      .filter((expression) => Object.hasOwn(NODE_LABELS, expression.text('key')))
      .map((expression) => `${expression.at('key')}: ${NODE_LABELS[expression.text('key')]}`),
};
