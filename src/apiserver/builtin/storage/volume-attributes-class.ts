import { objectIn, textIn } from '../../../util/json-value.ts';
import { equalJson } from '../../../api/equal.ts';
import { columns, field } from '../../table/column.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { validateDriverAndParameters } from './class-parameters.ts';

export const VOLUME_ATTRIBUTES_CLASS: BuiltinKind = {
  resource: 'storage.k8s.io/volumeattributesclasses',
  revalidatesName: 'object',
  returnsDeleted: true,
  validate: (object, previous) => {
    validateDriverAndParameters(object, 'driverName');
    const parameters = object.in('parameters').value;
    if (Object.keys(parameters).length === 0) {
      object.required('parameters', 'must contain at least one key/value pair');
    }
    if (previous && object.text('driverName') !== textIn(previous, 'driverName')) {
      object.forbidden('driverName', 'updates to driverName are forbidden.');
    }
    if (previous && !equalJson(parameters, objectIn(previous, 'parameters') ?? {})) {
      object.forbidden('parameters', 'updates to parameters are forbidden.');
    }
  },
  columns: columns(field('DriverName', 'driverName')),
};
