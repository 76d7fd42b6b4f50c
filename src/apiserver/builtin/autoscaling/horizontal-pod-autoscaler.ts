import type { JsonObject } from '../../../util/json-value.ts';
import { isSet, numberIn, objectIn, objectsIn, textIn } from '../../../util/json-value.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { textOf } from '../../objects/field-path.ts';
import type { ApiObject } from '../../objects/resource-definition.ts';
import { column, columns, field, numeric } from '../../table/column.ts';
import { validateMetric, validateReference, validateScalingRules } from './metric-validation.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

/** Stored as autoscaling/v2. */
export const HORIZONTAL_POD_AUTOSCALER: BuiltinKind = {
  resource: 'autoscaling/horizontalpodautoscalers',
  tracksGeneration: true,
  defaults: { 'spec.minReplicas': 1 },
  hooks: { applyDefaults },
  validate,
  columns: columns(
    column('Reference', 'Kind and name of the scaled object.', (autoscaler) => {
      const target = objectIn(objectIn(autoscaler, 'spec'), 'scaleTargetRef');
      return `${textIn(target, 'kind')}/${textIn(target, 'name')}`;
    }),
    column('Targets', 'Current and target values of the metrics.', (autoscaler) => {
      const current = objectsIn(objectIn(autoscaler, 'status'), 'currentMetrics');
      const all = objectsIn(objectIn(autoscaler, 'spec'), 'metrics').map((metric, index) =>
        metricText(metric, current[index]),
      );
      const more = all.length > 2 ? ` + ${all.length - 2} more...` : '';
      return all.slice(0, 2).join(', ') + more || '<none>';
    }),
    field('MinPods', 'spec.minReplicas', '<unset>'),
    numeric('MaxPods', 'spec.maxReplicas', 'string'),
    numeric('Replicas', 'status.currentReplicas', 'string'),
  ),
};

const SCALE_UP = {
  stabilizationWindowSeconds: 0,
  selectPolicy: 'Max',
  policies: [
    { type: 'Pods', value: 4, periodSeconds: 15 },
    { type: 'Percent', value: 100, periodSeconds: 15 },
  ],
};

const SCALE_DOWN = {
  selectPolicy: 'Max',
  policies: [{ type: 'Percent', value: 100, periodSeconds: 15 }],
};

const NO_SCALE_TO_ZERO =
  'must specify at least one Object or External metric to support scaling to zero replicas';

function applyDefaults(autoscaler: ApiObject): void {
  const spec = objectIn(autoscaler, 'spec');
  if (!spec) return;
  if (objectsIn(spec, 'metrics').length === 0) spec['metrics'] = [cpuMetric(80)];
  const behavior = objectIn(spec, 'behavior');
  if (!behavior) return;
  for (const [field, rules] of Object.entries({ scaleUp: SCALE_UP, scaleDown: SCALE_DOWN })) {
    // A value of another type is refused later.
    if (isSet(behavior, field) && !objectIn(behavior, field)) continue;
    behavior[field] = { ...structuredClone(rules), ...objectIn(behavior, field) };
  }
}

export function cpuMetric(averageUtilization: number): JsonObject {
  const target = { type: 'Utilization', averageUtilization };
  return { type: 'Resource', resource: { name: 'cpu', target } };
}

function validate(autoscaler: CheckedObject): void {
  const spec = autoscaler.in('spec');
  const min = spec.number('minReplicas') ?? 0;
  const max = spec.number('maxReplicas') ?? 0;
  if (spec.has('minReplicas') && max < min) {
    spec.invalid('maxReplicas', 'must be greater than or equal to `minReplicas`', max);
  }
  const target = spec.in('scaleTargetRef');
  validateReference(target);
  const apiVersion = target.text('apiVersion');
  const hasGroup = /[^/]\//.test(apiVersion) || apiVersion.split('/').length > 2;
  if (!hasGroup && target.text('kind') !== 'ReplicationController') {
    target.invalid('apiVersion', 'apiVersion must specify API group', apiVersion);
  }
  spec.requireNonNegative('minReplicas');
  for (const metric of spec.items('metrics')) validateMetric(metric);
  const isOfOtherMetrics = spec
    .items('metrics')
    .some(({ value: { type } }) => type === 'Object' || type === 'External');
  if (spec.has('minReplicas') && min === 0 && !isOfOtherMetrics) {
    spec.forbidden('metrics', NO_SCALE_TO_ZERO);
  }
  for (const direction of ['scaleUp', 'scaleDown']) {
    const rules = spec.in('behavior').get(direction);
    if (rules) validateScalingRules(rules);
  }
  if (max === 0) spec.required('maxReplicas');
  else if (max < 0) spec.invalid('maxReplicas', 'must be greater than or equal to 1');
  const status = autoscaler.in('status');
  status.requireNonNegative('currentReplicas', 'desiredReplicas');
  for (const condition of status.items('conditions')) {
    condition.requireNonNegative('observedGeneration');
  }
}

/** The source of a metric is in the field of its type: `containerResource` of ContainerResource. */
function metricText(metric: JsonObject, current: JsonObject | undefined): string {
  const type = textIn(metric, 'type');
  const key = type.charAt(0).toLowerCase() + type.slice(1);
  const source = objectIn(metric, key);
  if (!source) return '<unknown type>';
  const target = objectIn(source, 'target') ?? {};
  const value = objectIn(objectIn(current, key), 'current') ?? {};
  const amount = (name: string) =>
    `${textOf(value[name], '<unknown>')}/${textOf(target[name], '<auto>')}`;
  if (type === 'Resource' || type === 'ContainerResource') {
    const name = textIn(source, 'name');
    if (target['averageValue'] !== undefined) return `${name}: ${amount('averageValue')}`;
    const percent = (holder: JsonObject, absent: string) => {
      const utilization = numberIn(holder, 'averageUtilization');
      return utilization === undefined ? absent : `${utilization}%`;
    };
    return `${name}: ${percent(value, '<unknown>')}/${percent(target, '<auto>')}`;
  }
  if (type === 'Pods') return amount('averageValue');
  return target['averageValue'] === undefined ? amount('value') : `${amount('averageValue')} (avg)`;
}
