import { columns, count } from '../../table/column.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

export const CSI_NODE: BuiltinKind = {
  resource: 'storage.k8s.io/csinodes',
  returnsDeleted: true,
  unconditionalUpdate: false,
  defaults: { 'spec.drivers': [] },
  columns: columns(count('Drivers', 'spec.drivers')),
};
