import { numberIn, objectIn } from '../../../util/json-value.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { columns, numeric, wide } from '../../table/column.ts';
import { disabledTemplateFields } from '../pods/disabled-fields.ts';
import { applyTemplateDefaults } from '../pods/pod-defaults.ts';
import { CONTAINER_COLUMNS } from '../pods/template-columns.ts';
import { NO_MATCH, validatePodTemplate, validateRestarted } from '../pods/template-validation.ts';
import { workloadWarnings } from '../pods/template-warnings.ts';
import { WORKLOAD_SCALE, inheritLabels, validateReplicaStatus } from '../pods/workload.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { labelsText } from '../shared/cells.ts';

export const REPLICATION_CONTROLLER: BuiltinKind = {
  resource: 'replicationcontrollers',
  orphansDependents: true,
  scale: WORKLOAD_SCALE,
  // As upstream, which validates only the generated name.
  prefixFormat: 'pathSegment',
  tracksGeneration: true,
  defaults: { 'spec.replicas': 1 },
  selectableFields: {
    'status.replicas': (object) => String(numberIn(objectIn(object, 'status'), 'replicas') ?? 0),
  },
  disabledFields: disabledTemplateFields(),
  hooks: {
    applyDefaults: (controller) => {
      const spec = objectIn(controller, 'spec');
      if (!spec) return;
      applyTemplateDefaults(spec);
      const metadata = objectIn(objectIn(spec, 'template'), 'metadata');
      const labels = objectIn(metadata, 'labels');
      if (Object.keys(objectIn(spec, 'selector') ?? {}).length === 0 && labels) {
        spec['selector'] = { ...labels };
      }
      inheritLabels(controller);
    },
  },
  validate: validateReplicationController,
  columns: [
    ...columns(
      numeric('Desired', 'spec.replicas'),
      numeric('Current', 'status.replicas'),
      numeric('Ready', 'status.readyReplicas'),
    ),
    ...CONTAINER_COLUMNS,
    wide('Selector', 'Labels of the Pods of the controller.', (controller) =>
      labelsText(controller, ['spec', 'selector']),
    ),
  ],
  warnings: workloadWarnings('spec.template', true),
};

function validateReplicationController(controller: CheckedObject): void {
  const spec = controller.in('spec');
  spec.requireNonNegative('minReadySeconds');
  const selector = Object.entries(spec.in('selector').value);
  if (selector.length === 0) spec.required('selector');
  const template = spec.get('template');
  if (!template) spec.required('template');
  else {
    const metadata = template.in('metadata');
    const labels = metadata.in('labels').value;
    if (selector.some(([key, value]) => labels[key] !== value)) {
      metadata.invalid('labels', NO_MATCH);
    }
    validatePodTemplate(template);
    validateRestarted(template.in('spec'), 'ReplicationController');
  }
  spec.requireNonNegative('replicas');
  const parts = ['fullyLabeledReplicas', 'readyReplicas', 'availableReplicas'];
  validateReplicaStatus(controller, parts);
}
