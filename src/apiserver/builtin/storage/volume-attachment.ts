import { isSet, objectIn } from '../../../util/json-value.ts';
import { fieldError } from '../../../api/field-error.ts';
import { columns, field, flagColumn } from '../../table/column.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { STATUS_ONLY } from '../shared/builtin-kind.ts';

export const VOLUME_ATTACHMENT: BuiltinKind = {
  resource: 'storage.k8s.io/volumeattachments',
  ...STATUS_ONLY,
  returnsDeleted: true,
  unconditionalUpdate: false,
  immutable: ['spec'],
  hooks: {
    validate: (attachment) => {
      const source = objectIn(objectIn(attachment, 'spec'), 'source') ?? {};
      const isOne = isSet(source, 'inlineVolumeSpec') !== isSet(source, 'persistentVolumeName');
      const detail = 'must specify exactly one of inlineVolumeSpec and persistentVolumeName';
      return isOne ? [] : [fieldError.required('spec.source', detail)];
    },
  },
  columns: columns(
    field('Attacher', 'spec.attacher', '', { format: 'name' }),
    field('PV', 'spec.source.persistentVolumeName'),
    field('Node', 'spec.nodeName'),
    flagColumn('Attached', 'status.attached'),
  ),
};
