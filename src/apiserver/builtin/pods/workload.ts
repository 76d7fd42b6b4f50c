import { objectIn } from '../../../util/json-value.ts';
import { equalJson } from '../../../api/equal.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import type {
  ApiObject,
  ScaleFieldPaths,
  StoredObject,
} from '../../objects/resource-definition.ts';

/** A job without labels has those of its template. */
export function inheritLabels(workload: ApiObject): void {
  if (Object.keys(workload.metadata.labels ?? {}).length > 0) return;
  const template = objectIn(objectIn(workload, 'spec'), 'template');
  const labels = Object.entries(objectIn(objectIn(template, 'metadata'), 'labels') ?? {}).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  );
  if (labels.length > 0) workload.metadata.labels = Object.fromEntries(labels);
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

/** A number that is not negative, or a percentage. */
export function requireAmount(object: CheckedObject, field: string): void {
  const value = object.value[field];
  if (typeof value === 'string' && !/^\d+%$/.test(value)) {
    object.invalid(
      field,
      "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
    );
  }
  object.requireNonNegative(field);
}

/** The number in `3` or `25%`; 0 for other values. */
export function amountIn(object: CheckedObject, field: string): number {
  return object.number(field) ?? Number(/^(\d+)%$/.exec(object.text(field))?.[1] ?? 0);
}
