import { Verbatim, typedText } from '../../../api/field-error.ts';
import type { JsonObject } from '../../../util/json-value.ts';
import { objectIn } from '../../../util/json-value.ts';
import { equalJson } from '../../../api/equal.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import type { ApiObject, StoredObject } from '../../objects/resource-definition.ts';
import type { ScaleFieldPaths } from '../../objects/subresources.ts';

/** A job without labels has those of its template: the same object, as upstream. */
export function inheritLabels(workload: ApiObject): void {
  if (Object.keys(workload.metadata.labels ?? {}).length > 0) return;
  const labels = templateLabels(workload);
  if (labels && isTextMap(labels)) workload.metadata.labels = labels;
}

/** Returns the labels of the Pods of a workload, if it has some. */
export function templateLabels(workload: ApiObject): JsonObject | undefined {
  const template = objectIn(objectIn(workload, 'spec'), 'template');
  const labels = objectIn(objectIn(template, 'metadata'), 'labels');
  return labels && Object.keys(labels).length > 0 ? labels : undefined;
}

function isTextMap(map: JsonObject): map is Record<string, string> {
  return Object.values(map).every((value) => typeof value === 'string');
}

/** The strategy of updates with the names of Go's fields, which upstream reports. */
export function strategyInGo(strategy: CheckedObject): Verbatim {
  const update = strategy.get('rollingUpdate')?.value;
  const { maxUnavailable = 0, maxSurge = 0 } = update ?? {};
  const RollingUpdate = update ? { MaxUnavailable: maxUnavailable, MaxSurge: maxSurge } : null;
  return new Verbatim(JSON.stringify({ Type: strategy.text('type'), RollingUpdate }));
}

/** Where Deployment and ReplicaSet have what `/scale` shows. */
export const WORKLOAD_SCALE: ScaleFieldPaths = {
  specReplicasPath: '.spec.replicas',
  statusReplicasPath: '.status.replicas',
  labelSelectorPath: '.spec.selector',
};

/** The selector of a workload says which Pods are its own; it never changes. */
export function validateSameSelector(next: CheckedObject, previous: StoredObject): void {
  const spec = next.in('spec');
  const was = objectIn(objectIn(previous, 'spec'), 'selector');
  if (equalJson(spec.get('selector')?.value, was)) return;
  spec.invalid('selector', 'field is immutable');
}

/**
 * The counts of a status: none is negative, `parts` are parts of `replicas`.
 *
 * @param ready how a server calls the number of ready Pods
 */
export function validateReplicaStatus(
  object: CheckedObject,
  parts: readonly string[],
  ready: string = 'readyReplicas',
): void {
  const status = object.in('status');
  status.requireNonNegative('replicas', ...parts, ...OTHER_COUNTS);
  const count = (field: string) => status.number(field) ?? 0;
  for (const field of parts) {
    if (count(field) <= count('replicas')) continue;
    status.invalid(field, 'cannot be greater than status.replicas', count(field));
  }
  const available = count('availableReplicas');
  if (available > count('readyReplicas')) {
    status.invalid('availableReplicas', `cannot be greater than ${ready}`, available);
  }
}

const OTHER_COUNTS = [
  'unavailableReplicas',
  'terminatingReplicas',
  'observedGeneration',
  'collisionCount',
];

const NOT_A_PERCENTAGE =
  "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";

/**
 * A number that is not negative, or a percentage.
 *
 * @param max whether a percentage is at most 100
 */
export function requireAmount(object: CheckedObject, field: string, max?: '100%'): void {
  const value = object.value[field];
  if (max && typeof value === 'string' && /^\d+%$/.test(value) && parseInt(value, 10) > 100) {
    object.invalid(field, 'must not be greater than 100%');
  }
  if (typeof value === 'string' && !/^\d+%$/.test(value)) {
    object.invalid(field, NOT_A_PERCENTAGE, typedText(value));
  }
  object.requireNonNegative(field);
}

/** The number in `3`, `"3"` or `25%`; 0 for other values. */
export function amountIn(object: CheckedObject, field: string): number {
  return (
    object.number(field) ??
    Number(/^([+-]?\d+|\d+%)$/.exec(object.text(field))?.[1]?.replace('%', '') ?? 0)
  );
}
