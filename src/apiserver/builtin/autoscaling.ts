import { numberIn, objectIn, objectsIn, textIn } from '../../util/json-value.ts';
import type { ApiObject, StoredObject } from '../objects/resource-definition.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { isRecord } from '../../util/values.ts';
import { checked } from '../objects/checked-object.ts';
import type { CheckedObject } from '../objects/checked-object.ts';
import type { KindTraits } from './definition.ts';
import { validateMetric, validateReference, validateScalingRules } from './metric-validation.ts';

/** Stored as autoscaling/v2. */
export const AUTOSCALER: KindTraits = {
  tracksGeneration: true,
  defaults: { 'spec.minReplicas': 1 },
  hooks: { applyDefaults, validate: checked(validate) },
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
  behavior['scaleUp'] = { ...structuredClone(SCALE_UP), ...objectIn(behavior, 'scaleUp') };
  behavior['scaleDown'] = { ...structuredClone(SCALE_DOWN), ...objectIn(behavior, 'scaleDown') };
}

function cpuMetric(averageUtilization: number): JsonObject {
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
  if (!apiVersion.includes('/') && target.text('kind') !== 'ReplicationController') {
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
}

/** Annotations of v1 with the fields that only v2 has. */
const ANNOTATIONS = {
  metrics: 'autoscaling.alpha.kubernetes.io/metrics',
  behavior: 'autoscaling.alpha.kubernetes.io/behavior',
  currentMetrics: 'autoscaling.alpha.kubernetes.io/current-metrics',
  conditions: 'autoscaling.alpha.kubernetes.io/conditions',
} as const;

type Extra = keyof typeof ANNOTATIONS;

export const AUTOSCALER_V1: KindTraits = {
  tracksGeneration: true,
  defaults: { 'spec.minReplicas': 1 },
  storedAs: { kind: 'autoscaling/v2/horizontalpodautoscalers', toStored, fromStored },
};

function toStored<T extends StoredObject>(object: T): T {
  const { targetCPUUtilizationPercentage: cpu, ...spec } = objectIn(object, 'spec') ?? {};
  const { currentCPUUtilizationPercentage: current, ...status } = objectIn(object, 'status') ?? {};
  const annotations = { ...object.metadata.annotations };
  const extra = (field: Extra): unknown => {
    const text = annotations[ANNOTATIONS[field]];
    delete annotations[ANNOTATIONS[field]];
    return text === undefined ? undefined : parsed(text);
  };
  const others = listOf(extra('metrics'));
  const metrics = [...others, ...(typeof cpu === 'number' ? [cpuMetric(cpu)] : [])];
  const currentCpu = { name: 'cpu', current: { averageUtilization: current, averageValue: '0' } };
  const currentMetrics = [
    ...(typeof current === 'number' ? [{ type: 'Resource', resource: currentCpu }] : []),
    ...listOf(extra('currentMetrics')),
  ];
  const behavior = extra('behavior');
  const conditions = extra('conditions');
  const { annotations: _annotations, ...metadata } = object.metadata;
  return {
    ...object,
    apiVersion: 'autoscaling/v2',
    metadata: { ...metadata, ...(Object.keys(annotations).length > 0 && { annotations }) },
    spec: {
      ...spec,
      ...(metrics.length > 0 && { metrics }),
      ...(behavior !== undefined && { behavior }),
    },
    ...(object['status'] !== undefined && {
      status: {
        ...status,
        ...(currentMetrics.length > 0 && { currentMetrics }),
        ...(conditions !== undefined && { conditions }),
      },
    }),
  };
}

function fromStored(object: StoredObject): StoredObject {
  const { metrics = [], behavior, ...spec } = objectIn(object, 'spec') ?? {};
  const status = objectIn(object, 'status');
  const { currentMetrics = [], conditions, ...shown } = status ?? {};
  const [cpu, others] = withoutCpu(metrics);
  const [current, otherCurrent] = withoutCpu(currentMetrics);
  const annotations: Record<string, string> = { ...object.metadata.annotations };
  const add = (field: Extra, value: unknown) => {
    const isEmpty = Array.isArray(value) ? value.length === 0 : value === undefined;
    if (!isEmpty) annotations[ANNOTATIONS[field]] = JSON.stringify(value);
  };
  add('metrics', others);
  add('behavior', behavior);
  add('currentMetrics', otherCurrent);
  add('conditions', conditions);
  return {
    ...object,
    apiVersion: 'autoscaling/v1',
    metadata: {
      ...object.metadata,
      ...(Object.keys(annotations).length > 0 && { annotations }),
    },
    spec: { ...spec, ...(cpu !== undefined && { targetCPUUtilizationPercentage: cpu }) },
    ...(status && {
      status: {
        currentReplicas: 0,
        ...shown,
        ...(current !== undefined && { currentCPUUtilizationPercentage: current }),
      },
    }),
  };
}

/** The utilization of the CPU, and the metrics that v1 has no field for. */
function withoutCpu(metrics: unknown): [utilization: number | undefined, others: unknown[]] {
  let utilization: number | undefined;
  const others = listOf(metrics).filter((metric) => {
    const resource = isRecord(metric) ? objectIn(metric, 'resource') : undefined;
    if (utilization !== undefined || textIn(resource, 'name') !== 'cpu') return true;
    const value = objectIn(resource, 'target') ?? objectIn(resource, 'current');
    utilization = numberIn(value, 'averageUtilization');
    return utilization === undefined;
  });
  return [utilization, others];
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The value of an annotation; one that is no JSON is ignored, as upstream ignores it. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
