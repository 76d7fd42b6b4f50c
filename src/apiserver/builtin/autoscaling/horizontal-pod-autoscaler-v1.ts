import { escapeHtml } from '../../../util/go-format.ts';
import type { JsonObject } from '../../../util/json-value.ts';
import {
  jsonIfValid,
  numberIn,
  objectIn,
  objectsIn,
  setDefault,
  textIn,
} from '../../../util/json-value.ts';
import { isRecord } from '../../../util/values.ts';
import type { ApiObject, StoredObject } from '../../objects/resource-definition.ts';
import { shallowCopy } from '../../objects/resource-definition.ts';
import { cpuMetric } from './horizontal-pod-autoscaler.ts';
import {
  behaviorToV1,
  behaviorToV2,
  metricsToV1,
  metricsToV2,
  statusesToV1,
  statusesToV2,
} from './metrics-v1.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

export const HORIZONTAL_POD_AUTOSCALER_V1: BuiltinKind = {
  resource: 'autoscaling/v1/horizontalpodautoscalers',
  tracksGeneration: true,
  defaults: { 'spec.minReplicas': 1 },
  hooks: { applyDefaults: convert },
  storedAs: { kind: 'autoscaling/v2/horizontalpodautoscalers', toStored, fromStored },
};

/** Annotations of v1 with the fields that only v2 has. */
const ANNOTATIONS = {
  metrics: 'autoscaling.alpha.kubernetes.io/metrics',
  behavior: 'autoscaling.alpha.kubernetes.io/behavior',
  currentMetrics: 'autoscaling.alpha.kubernetes.io/current-metrics',
  conditions: 'autoscaling.alpha.kubernetes.io/conditions',
} as const;

/**
 * Sets the fields to what upstream's conversion of a request makes of them.
 * Without any metric, the target is that of the CPU.
 */
function convert(autoscaler: ApiObject): void {
  const spec = objectIn(autoscaler, 'spec');
  if (!spec) return;
  const others = autoscaler.metadata.annotations?.[ANNOTATIONS.metrics];
  if (others === undefined || metricsToV2(jsonIfValid(others)).length === 0) {
    setDefault(spec, 'targetCPUUtilizationPercentage', 80);
  }
  autoscaler.metadata = shallowCopy(fromStored(toStored(autoscaler))).metadata;
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
  const others = metricsToV2(extra('metrics'));
  const metrics = [...others, ...(typeof cpu === 'number' ? [cpuMetric(cpu)] : [])];
  const currentCpu = { name: 'cpu', current: { averageUtilization: current } };
  const ofCpu = typeof current === 'number' ? [{ type: 'Resource', resource: currentCpu }] : [];
  const statuses = extra('currentMetrics');
  const currentMetrics = Array.isArray(statuses) ? statusesToV2(statuses) : ofCpu;
  const behavior = behaviorToV2(extra('behavior'));
  const hasBehavior = isRecord(behavior) && Object.keys(behavior).length > 0;
  const conditions = extra('conditions');
  const { annotations: _annotations, ...metadata } = object.metadata;
  return {
    ...object,
    apiVersion: 'autoscaling/v2',
    metadata: { ...metadata, ...(Object.keys(annotations).length > 0 && { annotations }) },
    spec: {
      ...spec,
      ...(metrics.length > 0 && { metrics }),
      ...(hasBehavior && { behavior }),
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
  const all = objectsIn({ metrics }, 'metrics');
  const cpu = all.map(targetOfCpu).find((target) => target !== undefined);
  const others = all.filter((metric) => targetOfCpu(metric) === undefined);
  const ofCpu = objectsIn({ currentMetrics }, 'currentMetrics').map(currentOfCpu);
  const current = ofCpu.findLast((utilization) => utilization !== undefined);
  const { annotations: known, ...metadata } = object.metadata;
  const annotations: Record<string, string> = { ...known };
  const add = (field: Extra, value: unknown) => {
    const isEmpty = Array.isArray(value) ? value.length === 0 : value === undefined;
    if (!isEmpty) annotations[ANNOTATIONS[field]] = escapeHtml(JSON.stringify(value));
  };
  add('metrics', metricsToV1(others));
  add('behavior', isRecord(behavior) ? behaviorToV1(behavior) : undefined);
  // As upstream, with that of the CPU, of which v1 has no amount.
  add('currentMetrics', statusesToV1(currentMetrics));
  add('conditions', conditions);
  return {
    ...object,
    apiVersion: 'autoscaling/v1',
    metadata: {
      ...metadata,
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

function targetOfCpu(metric: JsonObject): number | undefined {
  return utilizationOfCpu(metric, 'target');
}

function currentOfCpu(metric: JsonObject): number | undefined {
  return utilizationOfCpu(metric, 'current');
}

function utilizationOfCpu(metric: JsonObject, field: string): number | undefined {
  const resource = objectIn(metric, 'resource');
  if (textIn(metric, 'type') !== 'Resource' || textIn(resource, 'name') !== 'cpu') return undefined;
  return numberIn(objectIn(resource, field), 'averageUtilization');
}
