import { objectIn } from '../../../util/json-value.ts';
import { fieldError } from '../../../api/field-error.ts';
import { columns, field } from '../../table/column.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

export const VOLUME_ATTRIBUTES_CLASS: BuiltinKind = {
  resource: 'storage.k8s.io/volumeattributesclasses',
  returnsDeleted: true,
  immutable: ['driverName', 'parameters'],
  hooks: {
    validate: (object) => {
      if (Object.keys(objectIn(object, 'parameters') ?? {}).length > 0) return [];
      return [fieldError.required('parameters', 'must contain at least one key/value pair')];
    },
  },
  columns: columns(field('DriverName', 'driverName')),
};
