import type { JsonObject } from '../../../util/json-value.ts';
import { isSet, objectIn, objectsIn } from '../../../util/json-value.ts';
import { isRecord } from '../../../util/values.ts';
import { internalStruct } from '../shared/internal-structs.ts';

/** A field of v1, that of v2 in its place, and what v1 has without any. */
type Field = readonly [v1: string, v2: string, absent?: string];

const METRIC: Field = ['metricName', 'metric.name', ''];

/** The fields of the metrics' sources in v1, in the order of Go's structs. */
const SOURCES: Readonly<Record<string, readonly Field[]>> = {
  object: [
    ['target', 'describedObject'],
    METRIC,
    ['targetValue', 'target.value', '0'],
    ['selector', 'metric.selector'],
    ['averageValue', 'target.averageValue'],
  ],
  pods: [
    METRIC,
    ['targetAverageValue', 'target.averageValue', '0'],
    ['selector', 'metric.selector'],
  ],
  resource: [
    ['name', 'name', ''],
    ['targetAverageUtilization', 'target.averageUtilization'],
    ['targetAverageValue', 'target.averageValue'],
  ],
  containerResource: [
    ['name', 'name', ''],
    ['targetAverageUtilization', 'target.averageUtilization'],
    ['targetAverageValue', 'target.averageValue'],
    ['container', 'container', ''],
  ],
  external: [
    METRIC,
    ['metricSelector', 'metric.selector'],
    ['targetValue', 'target.value'],
    ['targetAverageValue', 'target.averageValue'],
  ],
};

const STATUSES: typeof SOURCES = {
  object: [
    ['target', 'describedObject'],
    METRIC,
    ['currentValue', 'current.value', '0'],
    ['selector', 'metric.selector'],
    ['averageValue', 'current.averageValue'],
  ],
  pods: [
    METRIC,
    ['currentAverageValue', 'current.averageValue', '0'],
    ['selector', 'metric.selector'],
  ],
  resource: [
    ['name', 'name', ''],
    ['currentAverageUtilization', 'current.averageUtilization'],
    ['currentAverageValue', 'current.averageValue', '0'],
  ],
  containerResource: [
    ['name', 'name', ''],
    ['currentAverageUtilization', 'current.averageUtilization'],
    ['currentAverageValue', 'current.averageValue', '0'],
    ['container', 'container', ''],
  ],
  external: [
    METRIC,
    ['metricSelector', 'metric.selector'],
    ['currentValue', 'current.value', '0'],
    ['currentAverageValue', 'current.averageValue'],
  ],
};

/** The order of the fields of Go's structs in the values of sources. */
const ORDER = ['kind', 'name', 'apiVersion', 'matchLabels', 'matchExpressions'];

export const metricsToV1 = (metrics: unknown): JsonObject[] => toV1(metrics, SOURCES);
export const statusesToV1 = (statuses: unknown): JsonObject[] => toV1(statuses, STATUSES);
export const statusesToV2 = (statuses: unknown): JsonObject[] => toV2(statuses, STATUSES);

export function metricsToV2(metrics: unknown): JsonObject[] {
  return toV2(metrics, SOURCES).map((metric) => {
    for (const name of Object.keys(SOURCES)) {
      const source = objectIn(metric, name);
      if (source) source['target'] = typed(name, objectIn(source, 'target') ?? {});
    }
    return metric;
  });
}

/** v1 has no types of targets: the fields tell. */
function typed(name: string, target: JsonObject): JsonObject {
  if (name === 'object' && isSet(target, 'averageValue')) {
    const { value, ...rest } = target;
    return { type: 'AverageValue', ...(value !== '0' && { value }), ...rest };
  }
  if (isSet(target, 'averageUtilization')) return { type: 'Utilization', ...target };
  return { type: isSet(target, 'value') ? 'Value' : 'AverageValue', ...target };
}

function toV1(metrics: unknown, sources: typeof SOURCES): JsonObject[] {
  return objectsIn({ metrics }, 'metrics').map((metric) => {
    const converted: JsonObject = { type: metric['type'] ?? '' };
    for (const [name, fields] of Object.entries(sources)) {
      const source = objectIn(metric, name);
      if (!source) continue;
      const shown: JsonObject = {};
      for (const [field, path, absent] of fields) {
        const [first = '', second] = path.split('.');
        const value = second === undefined ? source[first] : objectIn(source, first)?.[second];
        if ((value ?? absent) !== undefined) shown[field] = inOrder(value ?? absent);
      }
      converted[name] = shown;
    }
    return converted;
  });
}

function toV2(metrics: unknown, sources: typeof SOURCES): JsonObject[] {
  return objectsIn({ metrics }, 'metrics').map((metric) => {
    const converted: JsonObject = { type: metric['type'] ?? '' };
    for (const [name, fields] of Object.entries(sources)) {
      const source = objectIn(metric, name);
      if (!source) continue;
      const stored: JsonObject = {};
      for (const [field, path, absent] of fields) {
        const value = source[field] ?? absent;
        if (value === undefined) continue;
        const [first = '', second] = path.split('.');
        if (second === undefined) stored[first] = value;
        else stored[first] = { ...objectIn(stored, first), [second]: value };
      }
      converted[name] = stored;
    }
    return converted;
  });
}

function inOrder(value: unknown): unknown {
  if (!isRecord(value)) return value;
  const known = ORDER.filter((field) => isSet(value, field));
  return Object.fromEntries(known.map((field) => [field, value[field]]));
}

/** The internal type of upstream, whose fields have their names in Go. */
export function behaviorToV1(behavior: JsonObject): unknown {
  return internalStruct('autoscaling.v2.HorizontalPodAutoscalerBehavior', behavior);
}

/** As Go decodes it, with names in any case. */
export function behaviorToV2(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(behaviorToV2);
  if (!isRecord(value)) return value;
  const members = Object.entries(value).filter(([, member]) => member !== null);
  return Object.fromEntries(
    members.map(([name, member]) => [
      `${name.charAt(0).toLowerCase()}${name.slice(1)}`,
      behaviorToV2(member),
    ]),
  );
}
