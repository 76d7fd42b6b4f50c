import { jsonIfValid, numberIn, objectIn, setDefault, textIn } from '../../../util/json-value.ts';
import { isRecord } from '../../../util/values.ts';
import type { ApiObject, StoredObject } from '../../objects/resource-definition.ts';
import { cpuMetric } from './horizontal-pod-autoscaler.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

export const HORIZONTAL_POD_AUTOSCALER_V1: BuiltinKind = {
  resource: 'autoscaling/v1/horizontalpodautoscalers',
  tracksGeneration: true,
  defaults: { 'spec.minReplicas': 1 },
  hooks: { applyDefaults: setTarget },
  storedAs: { kind: 'autoscaling/v2/horizontalpodautoscalers', toStored, fromStored },
};

/** Annotations of v1 with the fields that only v2 has. */
const ANNOTATIONS = {
  metrics: 'autoscaling.alpha.kubernetes.io/metrics',
  behavior: 'autoscaling.alpha.kubernetes.io/behavior',
  currentMetrics: 'autoscaling.alpha.kubernetes.io/current-metrics',
  conditions: 'autoscaling.alpha.kubernetes.io/conditions',
} as const;

/** Without any metric, the target is that of the CPU. */
function setTarget(autoscaler: ApiObject): void {
  const spec = objectIn(autoscaler, 'spec');
  const others = autoscaler.metadata.annotations?.[ANNOTATIONS.metrics];
  if (!spec || (others !== undefined && listOf(jsonIfValid(others)).length > 0)) return;
  setDefault(spec, 'targetCPUUtilizationPercentage', 80);
}

type Extra = keyof typeof ANNOTATIONS;

function toStored<T extends StoredObject>(object: T): T {
  const { targetCPUUtilizationPercentage: cpu, ...spec } = objectIn(object, 'spec') ?? {};
  const {
    currentCPUUtilizationPercentage: current,
    currentReplicas,
    ...status
  } = objectIn(object, 'status') ?? {};
  const annotations = { ...object.metadata.annotations };
  const extra = (field: Extra): unknown => {
    const text = annotations[ANNOTATIONS[field]];
    delete annotations[ANNOTATIONS[field]];
    // As upstream, an annotation that is no JSON is ignored.
    return text === undefined ? undefined : jsonIfValid(text);
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
        // v1 has 0 replicas, which v2 omits.
        ...(currentReplicas !== 0 && { currentReplicas }),
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
