import { columns, field, flagColumn } from '../../table/column.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { STATUS_ONLY } from '../shared/builtin-kind.ts';

export const VOLUME_ATTACHMENT: BuiltinKind = {
  resource: 'storage.k8s.io/volumeattachments',
  ...STATUS_ONLY,
  returnsDeleted: true,
  unconditionalUpdate: false,
  immutable: ['spec'],
  validate: (attachment) => {
    const source = attachment.in('spec').in('source');
    if (source.has('inlineVolumeSpec') !== source.has('persistentVolumeName')) return;
    source.required('', 'must specify exactly one of inlineVolumeSpec and persistentVolumeName');
  },
  columns: columns(
    field('Attacher', 'spec.attacher', '', { format: 'name' }),
    field('PV', 'spec.source.persistentVolumeName'),
    field('Node', 'spec.nodeName'),
    flagColumn('Attached', 'status.attached'),
  ),
};
