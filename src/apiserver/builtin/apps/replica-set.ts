import { objectIn } from '../../../util/json-value.ts';
import { columns, numeric } from '../../table/column.ts';
import { disabledTemplateFields } from '../pods/disabled-fields.ts';
import { applyTemplateDefaults } from '../pods/pod-defaults.ts';
import { TEMPLATE_COLUMNS } from '../pods/template-columns.ts';
import { validateTemplate } from '../pods/template-validation.ts';
import { workloadWarnings } from '../pods/template-warnings.ts';
import { WORKLOAD_SCALE, validateReplicaStatus, validateSameSelector } from '../pods/workload.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

export const REPLICA_SET: BuiltinKind = {
  resource: 'apps/replicasets',
  scale: WORKLOAD_SCALE,
  tracksGeneration: true,
  defaults: { 'spec.replicas': 1 },
  disabledFields: disabledTemplateFields(),
  hooks: {
    applyDefaults: (set) => {
      applyTemplateDefaults(objectIn(set, 'spec') ?? {});
    },
  },
  validate: (set) => {
    const spec = set.in('spec');
    spec.requireNonNegative('replicas', 'minReadySeconds');
    validateTemplate(spec, 'ReplicaSet');
    const parts = ['fullyLabeledReplicas', 'readyReplicas', 'availableReplicas'];
    validateReplicaStatus(set, parts);
  },
  validateUpdate: validateSameSelector,
  columns: [
    ...columns(
      numeric('Desired', 'spec.replicas'),
      numeric('Current', 'status.replicas'),
      numeric('Ready', 'status.readyReplicas'),
    ),
    ...TEMPLATE_COLUMNS,
  ],
  warnings: workloadWarnings('spec.template', true),
};
