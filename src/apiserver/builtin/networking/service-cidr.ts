import { objectIn, textsIn } from '../../../util/json-value.ts';
import { column, columns } from '../../table/column.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { STATUS_ONLY } from '../shared/builtin-kind.ts';

export const SERVICE_CIDR: BuiltinKind = {
  resource: 'networking.k8s.io/servicecidrs',
  ...STATUS_ONLY,
  immutable: ['spec.cidrs'],
  columns: columns(
    column('CIDRs', 'Address ranges.', (object) =>
      textsIn(objectIn(object, 'spec') ?? {}, 'cidrs').join(','),
    ),
  ),
};
