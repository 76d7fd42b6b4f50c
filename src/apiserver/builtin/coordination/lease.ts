import { columns, field } from '../../table/column.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

export const LEASE: BuiltinKind = {
  resource: 'coordination.k8s.io/leases',
  unconditionalUpdate: false,
  createOnUpdate: true,
  validate: (lease) => {
    const spec = lease.in('spec');
    const duration = spec.number('leaseDurationSeconds') ?? 1;
    if (duration <= 0) spec.invalid('leaseDurationSeconds', 'must be greater than 0');
    spec.requireNonNegative('leaseTransitions');
    if (spec.text('preferredHolder') !== '' && spec.text('strategy') === '') {
      spec.forbidden('preferredHolder', 'may only be specified if `strategy` is defined');
    }
  },
  columns: columns(field('Holder', 'spec.holderIdentity')),
};
