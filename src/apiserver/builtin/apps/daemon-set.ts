import { objectIn } from '../../../util/json-value.ts';
import { equalJson } from '../../../api/equal.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import type { ApiObject, StoredObject } from '../../objects/resource-definition.ts';
import { column, columns, numeric } from '../../table/column.ts';
import { disabledTemplateFields } from '../pods/disabled-fields.ts';
import { applyTemplateDefaults } from '../pods/pod-defaults.ts';
import { TEMPLATE_COLUMNS } from '../pods/template-columns.ts';
import { validateTemplate } from '../pods/template-validation.ts';
import { workloadWarnings } from '../pods/template-warnings.ts';
import { amountIn, requireAmount, strategyInGo, validateSameSelector } from '../pods/workload.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { labelsText } from '../shared/cells.ts';
import { requireCollisionsKept } from '../shared/status-validation.ts';

export const DAEMON_SET: BuiltinKind = {
  resource: 'apps/daemonsets',
  tracksGeneration: true,
  defaults: {
    'spec.selector': null,
    'spec.revisionHistoryLimit': 10,
    'spec.updateStrategy.type': 'RollingUpdate',
  },
  disabledFields: disabledTemplateFields(),
  hooks: {
    applyDefaults: (set) => {
      const spec = objectIn(set, 'spec');
      if (!spec) return;
      const strategy = objectIn(spec, 'updateStrategy') ?? {};
      const rollingUpdate = objectIn(strategy, 'rollingUpdate');
      const isRolling = strategy['type'] === 'RollingUpdate';
      if (isRolling || rollingUpdate) {
        const maxUnavailable = isRolling ? 1 : 0;
        strategy['rollingUpdate'] = { maxSurge: 0, maxUnavailable, ...rollingUpdate };
      }
      applyTemplateDefaults(spec);
      // As upstream, whose stored form has a number. So an update without the annotation changes it.
      const annotations = { [TEMPLATE_GENERATION]: '0', ...set.metadata.annotations };
      set.metadata.annotations = annotations;
    },
    prepareForCreate: (set) => setTemplateCount(set, templateCountOf(set) || 1),
    prepareForUpdate: countTemplates,
  },
  validate: validateDaemonSet,
  validateUpdate: (set, previous) => {
    validateSameSelector(set, previous);
    requireCollisionsKept(set, previous);
  },
  columns: [
    ...columns(
      numeric('Desired', 'status.desiredNumberScheduled'),
      numeric('Current', 'status.currentNumberScheduled'),
      numeric('Ready', 'status.numberReady'),
      numeric('Up-to-date', 'status.updatedNumberScheduled'),
      numeric('Available', 'status.numberAvailable'),
      column('Node Selector', 'Labels of the nodes that run the Pods.', (set) =>
        labelsText(set, ['spec', 'template', 'spec', 'nodeSelector']),
      ),
    ),
    ...TEMPLATE_COLUMNS,
  ],
  warnings: (set, previous) =>
    previous &&
    equalJson(set.in('spec').value['template'], objectIn(previous, 'spec')?.['template'])
      ? []
      : workloadWarnings('spec.template', false)(set, undefined),
};

/** Annotation with the number of templates so far, which is a field in older versions. */
const TEMPLATE_GENERATION = 'deprecated.daemonset.template.generation';

function countTemplates(set: ApiObject, previous: StoredObject): void {
  const template = (object: StoredObject) => objectIn(objectIn(object, 'spec'), 'template');
  const last = templateCountOf(previous);
  const isSame = equalJson(template(set), template(previous));
  setTemplateCount(set, isSame ? last : last + 1);
}

function templateCountOf({ metadata }: StoredObject): number {
  return Number(metadata.annotations?.[TEMPLATE_GENERATION] ?? 1);
}

function setTemplateCount({ metadata }: ApiObject, count: number): void {
  metadata.annotations = { ...metadata.annotations, [TEMPLATE_GENERATION]: String(count) };
}

function validateDaemonSet(set: CheckedObject): void {
  const spec = set.in('spec');
  validateTemplate(spec, 'DaemonSet');
  spec.requireNonNegative('minReadySeconds');
  const strategy = spec.in('updateStrategy');
  const types = ['RollingUpdate', 'OnDelete'];
  if (!types.includes(strategy.text('type'))) {
    strategy.notSupported('', types, strategyInGo(strategy));
  }
  const update = strategy.get('rollingUpdate');
  if (update && strategy.text('type') === 'RollingUpdate') {
    requireAmount(update, 'maxUnavailable', '100%');
    requireAmount(update, 'maxSurge', '100%');
    const [unavailable, surge] = [amountIn(update, 'maxUnavailable'), amountIn(update, 'maxSurge')];
    if (unavailable === 0 && surge === 0) {
      update.required('maxUnavailable', 'cannot be 0 when maxSurge is 0');
    } else if (unavailable !== 0 && surge !== 0) {
      update.invalid('maxSurge', 'may not be set when maxUnavailable is non-zero');
    }
  }
  spec.requireNonNegative('revisionHistoryLimit');
  set.in('status').requireNonNegative(...COUNTS);
}

const COUNTS = [
  'currentNumberScheduled',
  'numberMisscheduled',
  'desiredNumberScheduled',
  'numberReady',
  'observedGeneration',
  'updatedNumberScheduled',
  'numberAvailable',
  'numberUnavailable',
  'collisionCount',
];
