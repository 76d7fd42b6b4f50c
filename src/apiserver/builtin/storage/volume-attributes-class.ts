import { columns, field } from '../../table/column.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

export const VOLUME_ATTRIBUTES_CLASS: BuiltinKind = {
  resource: 'storage.k8s.io/volumeattributesclasses',
  returnsDeleted: true,
  immutable: ['driverName', 'parameters'],
  validate: (object) => {
    if (Object.keys(object.in('parameters').value).length > 0) return;
    object.required('parameters', 'must contain at least one key/value pair');
  },
  columns: columns(field('DriverName', 'driverName')),
};
