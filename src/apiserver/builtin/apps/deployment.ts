import { objectIn, setDefault } from '../../../util/json-value.ts';
import type { Deployment } from '../../../api/builtin.ts';
import { equalJson } from '../../../api/equal.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import type { ApiObject, HookContext, StoredObject } from '../../objects/resource-definition.ts';
import { column, columns, numeric } from '../../table/column.ts';
import { disabledTemplateFields } from '../pods/disabled-fields.ts';
import { applyTemplateDefaults } from '../pods/pod-defaults.ts';
import { TEMPLATE_COLUMNS } from '../pods/template-columns.ts';
import { validateTemplate } from '../pods/template-validation.ts';
import { workloadWarnings } from '../pods/template-warnings.ts';
import {
  WORKLOAD_SCALE,
  amountIn,
  requireAmount,
  strategyInGo,
  validateReplicaStatus,
  validateSameSelector,
} from '../pods/workload.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { requireCollisionsKept } from '../shared/status-validation.ts';

export const DEPLOYMENT: BuiltinKind = {
  resource: 'apps/deployments',
  scale: WORKLOAD_SCALE,
  tracksGeneration: true,
  statusKeeps: ['labels'],
  defaults: {
    'spec.replicas': 1,
    'spec.strategy': {},
    'spec.strategy.type': 'RollingUpdate',
    'spec.revisionHistoryLimit': 10,
    'spec.progressDeadlineSeconds': 600,
  },
  disabledFields: disabledTemplateFields(),
  hooks: { applyDefaults, prepareForUpdate },
  validate,
  validateUpdate: (deployment, previous) => {
    validateSameSelector(deployment, previous);
    requireCollisionsKept(deployment, previous);
  },
  columns: [
    ...columns(
      column<Deployment>(
        'Ready',
        'Number of ready pods, and of desired pods.',
        ({ spec, status }) => `${status?.readyReplicas ?? 0}/${spec?.replicas ?? 0}`,
      ),
      numeric('Up-to-date', 'status.updatedReplicas', 'string'),
      numeric('Available', 'status.availableReplicas', 'string'),
    ),
    ...TEMPLATE_COLUMNS,
  ],
  warnings: workloadWarnings('spec.template', true),
};

function applyDefaults(deployment: ApiObject): void {
  const spec = objectIn(deployment, 'spec');
  if (!spec) return;
  const strategy = objectIn(spec, 'strategy') ?? {};
  if (strategy['type'] === 'RollingUpdate') {
    setDefault(strategy, 'rollingUpdate', {});
    const rollingUpdate = objectIn(strategy, 'rollingUpdate') ?? {};
    // `setDefault` replaces an empty text, which Go keeps and validation rejects.
    rollingUpdate['maxUnavailable'] ??= '25%';
    rollingUpdate['maxSurge'] ??= '25%';
  }
  applyTemplateDefaults(spec);
}

/** As upstream, a change of annotations also increases the generation, because ReplicaSets get copies of them. */
function prepareForUpdate(
  deployment: ApiObject,
  previous: StoredObject,
  { subresource }: HookContext,
): void {
  if (subresource !== undefined) return;
  const { annotations = {}, generation = 0 } = previous.metadata;
  if (!equalJson(deployment.metadata.annotations ?? {}, annotations)) {
    deployment.metadata.generation = generation + 1;
  }
}

/** The annotation with the revision to roll back to, which is a field in older versions. */
const ROLLBACK_TO = 'deprecated.deployment.rollback.to';

function validate(deployment: CheckedObject): void {
  const spec = deployment.in('spec');
  spec.requireNonNegative('replicas');
  validateTemplate(spec, 'Deployment');
  validateStrategy(spec);
  spec.requireNonNegative('minReadySeconds', 'revisionHistoryLimit', 'progressDeadlineSeconds');
  const deadline = spec.number('progressDeadlineSeconds') ?? Infinity;
  if (deadline <= (spec.number('minReadySeconds') ?? 0)) {
    spec.invalid('progressDeadlineSeconds', 'must be greater than minReadySeconds');
  }
  validateReplicaStatus(deployment, ['updatedReplicas', 'readyReplicas', 'availableReplicas']);
  const revision = Number(deployment.in('metadata').in('annotations').text(ROLLBACK_TO));
  if (revision < 0) {
    spec.invalid('rollback.version', 'must be greater than or equal to 0', revision);
  }
}

function validateStrategy(spec: CheckedObject): void {
  const strategy = spec.in('strategy');
  const type = strategy.text('type');
  const supported = ['Recreate', 'RollingUpdate'];
  if (!supported.includes(type)) {
    spec.notSupported('strategy', supported, strategyInGo(strategy));
  }
  if (type === 'Recreate') {
    const why = "may not be specified when strategy `type` is 'Recreate'";
    if (strategy.has('rollingUpdate')) strategy.forbidden('rollingUpdate', why);
  }
  const update = strategy.get('rollingUpdate');
  if (!update || type !== 'RollingUpdate') return;
  requireAmount(update, 'maxUnavailable', '100%');
  requireAmount(update, 'maxSurge');
  if (amountIn(update, 'maxUnavailable') === 0 && amountIn(update, 'maxSurge') === 0) {
    update.invalid('maxUnavailable', 'may not be 0 when `maxSurge` is 0');
  }
}
