import { columns, field } from '../../table/column.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

export const LEASE: BuiltinKind = {
  resource: 'coordination.k8s.io/leases',
  unconditionalUpdate: false,
  createOnUpdate: true,
  disabledFields: ['spec.preferredHolder', 'spec.strategy'],
  validate: (lease) => {
    const spec = lease.in('spec');
    const duration = spec.number('leaseDurationSeconds') ?? 1;
    if (duration <= 0) spec.invalid('leaseDurationSeconds', 'must be greater than 0');
    spec.requireNonNegative('leaseTransitions');
  },
  columns: columns(field('Holder', 'spec.holderIdentity')),
};
