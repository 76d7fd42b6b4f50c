import { Verbatim } from '../../../api/field-error.ts';
import { columns, field, numeric } from '../../table/column.ts';
import { requireAmount } from '../pods/workload.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { validateLabelSelector } from '../shared/label-selector-validation.ts';
import { validateConditions } from '../shared/status-validation.ts';

export const POD_DISRUPTION_BUDGET: BuiltinKind = {
  resource: 'policy/poddisruptionbudgets',
  // As upstream, which validates no metadata of a budget.
  validatesMetadataLast: true,
  nameFormat: 'pathSegment',
  tracksGeneration: true,
  unconditionalUpdate: false,
  validate: (budget) => {
    const spec = budget.in('spec');
    if (spec.has('minAvailable') && spec.has('maxUnavailable')) {
      const why = 'minAvailable and maxUnavailable cannot be both set';
      budget.invalid('spec', why, inGo(spec.value));
    }
    requireAmount(spec, 'minAvailable', '100%');
    requireAmount(spec, 'maxUnavailable', '100%');
    validateLabelSelector(spec.get('selector'));
    spec.requireSupported('unhealthyPodEvictionPolicy', POLICIES);
    const status = budget.in('status');
    validateConditions(status);
    status.requireNonNegative(
      'disruptionsAllowed',
      'currentHealthy',
      'desiredHealthy',
      'expectedPods',
    );
  },
  columns: columns(
    field('Min Available', 'spec.minAvailable', 'N/A'),
    field('Max Unavailable', 'spec.maxUnavailable', 'N/A'),
    numeric('Allowed Disruptions', 'status.disruptionsAllowed'),
  ),
};

const POLICIES = ['AlwaysAllow', 'IfHealthyBudget'];

/** The spec with the names of Go's fields, which upstream reports. */
function inGo(spec: Readonly<Record<string, unknown>>): Verbatim {
  const { minAvailable, selector, maxUnavailable, unhealthyPodEvictionPolicy } = spec;
  return new Verbatim(
    JSON.stringify({
      MinAvailable: minAvailable,
      Selector: selector ?? null,
      MaxUnavailable: maxUnavailable,
      UnhealthyPodEvictionPolicy: unhealthyPodEvictionPolicy ?? null,
    }),
  );
}
