import { objectIn } from '../../../util/json-value.ts';
import type { ApiObject } from '../../objects/resource-definition.ts';
import { columns, field } from '../../table/column.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

export const LEASE: BuiltinKind = {
  resource: 'coordination.k8s.io/leases',
  unconditionalUpdate: false,
  createOnUpdate: true,
  hooks: { prepareForCreate: dropCoordination, prepareForUpdate: dropCoordination },
  validate: (lease) => {
    const spec = lease.in('spec');
    const duration = spec.number('leaseDurationSeconds') ?? 1;
    if (duration <= 0) spec.invalid('leaseDurationSeconds', 'must be greater than 0');
    spec.requireNonNegative('leaseTransitions');
  },
  columns: columns(field('Holder', 'spec.holderIdentity')),
};

/** Drops the fields of coordinated leader election, which a feature gate turns off. */
function dropCoordination(lease: ApiObject): void {
  const spec = objectIn(lease, 'spec');
  delete spec?.['strategy'];
  delete spec?.['preferredHolder'];
}
