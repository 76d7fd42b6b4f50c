import { equalJson } from '../../api/equal.ts';
import type { ScalePaths, StoredObject } from '../resource-definition.ts';
import type { FieldError } from '../../api/field-error.ts';
import { numberIn, objectIn } from './fields.ts';
import { Findings } from './findings.ts';

/** Where Deployment and ReplicaSet have what `/scale` shows. */
export const WORKLOAD_SCALE: ScalePaths = {
  specReplicasPath: '.spec.replicas',
  statusReplicasPath: '.status.replicas',
  labelSelectorPath: '.spec.selector',
};

/** The selector of a workload says which Pods are its own; it never changes. */
export function validateSameSelector(
  next: StoredObject,
  previous: StoredObject,
): readonly FieldError[] {
  const findings = new Findings();
  const is = objectIn(objectIn(next, 'spec'), 'selector');
  const was = objectIn(objectIn(previous, 'spec'), 'selector');
  if (!equalJson(is, was)) findings.invalid('spec.selector', is ?? null, 'field is immutable');
  return findings.errors;
}

/** The counts of a status: none is negative, `parts` are parts of `replicas`. */
export function validateReplicaStatus(
  object: StoredObject,
  parts: readonly string[],
  findings: Findings,
): void {
  const status = objectIn(object, 'status') ?? {};
  for (const field of ['replicas', ...parts, 'observedGeneration']) {
    findings.requireNonNegative(status, field, 'status');
  }
  const replicas = numberIn(status, 'replicas') ?? 0;
  for (const field of parts) {
    const part = numberIn(status, field) ?? 0;
    if (part > replicas) {
      findings.invalid(`status.${field}`, part, 'cannot be greater than status.replicas');
    }
  }
  const available = numberIn(status, 'availableReplicas') ?? 0;
  if (available > (numberIn(status, 'readyReplicas') ?? 0)) {
    findings.invalid('status.availableReplicas', available, 'cannot be greater than readyReplicas');
  }
}
