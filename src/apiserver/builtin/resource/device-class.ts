import { columns } from '../../table/column.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

export const DEVICE_CLASS: BuiltinKind = {
  resource: 'resource.k8s.io/deviceclasses',
  tracksGeneration: true,
  returnsDeleted: true,
  columns: columns(),
};
