import { equalJson } from '../../api/equal.ts';
import type { StoredObject } from '../resource-definition.ts';
import type { FieldError } from '../../api/field-error.ts';
import type { JsonObject } from '../schema/json-value.ts';
import { isSet, numberIn, objectIn, objectsIn, textIn } from './fields.ts';
import { Findings } from './findings.ts';

const MAX_INT32 = 2 ** 31 - 1;

const UPDATABLE = [
  '`spec.containers[*].image`',
  '`spec.initContainers[*].image`',
  '`spec.activeDeadlineSeconds`',
  '`spec.tolerations` (only additions to existing tolerations)',
  '`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)',
].join(',');

/** A Pod's spec hardly changes once it is there; its containers never come or go. */
export function validatePodUpdate(
  pod: StoredObject,
  previous: StoredObject,
): readonly FieldError[] {
  const findings = new Findings();
  const next = objectIn(pod, 'spec') ?? {};
  const before = objectIn(previous, 'spec') ?? {};
  for (const list of ['containers', 'initContainers'] as const) {
    if (objectsIn(next, list).length !== objectsIn(before, list).length) {
      findings.forbidden(`spec.${list}`, 'pod updates may not add or remove containers');
      return findings.errors;
    }
    validateImages(next, list, findings);
  }
  validateDeadline(next, before, findings);
  validateTolerations(next, before, findings);
  validateGates(next, before, findings);
  validateFixedFields(next, before, findings);
  validateQosClass(pod, previous, findings);
  return findings.errors;
}

function validateImages(
  spec: JsonObject,
  list: 'containers' | 'initContainers',
  findings: Findings,
): void {
  for (const [index, container] of objectsIn(spec, list).entries()) {
    const image = textIn(container, 'image');
    if (image === image.trim()) continue;
    findings.invalid(
      `spec.${list}[${index}].image`,
      image,
      'must not have leading or trailing whitespace',
    );
  }
}

function validateDeadline(next: JsonObject, before: JsonObject, findings: Findings): void {
  const path = 'spec.activeDeadlineSeconds';
  const was = numberIn(before, 'activeDeadlineSeconds');
  const is = numberIn(next, 'activeDeadlineSeconds');
  if (is === undefined) {
    if (was === undefined) return;
    findings.invalid(path, null, 'must not update from a positive integer to nil value');
  } else if (is < 0 || is > MAX_INT32) {
    findings.invalid(path, is, `must be between 0 and ${MAX_INT32}, inclusive`);
  } else if (was !== undefined && was < is) {
    findings.invalid(path, is, 'must be less than or equal to previous value');
  }
}

function validateTolerations(next: JsonObject, before: JsonObject, findings: Findings): void {
  const kept = objectsIn(next, 'tolerations');
  const isKept = (was: JsonObject) =>
    kept.some((is) => equalJson({ ...was, tolerationSeconds: 0 }, { ...is, tolerationSeconds: 0 }));
  if (objectsIn(before, 'tolerations').every(isKept)) return;
  findings.forbidden(
    'spec.tolerations',
    'existing toleration can not be modified except its tolerationSeconds',
  );
}

function validateGates(next: JsonObject, before: JsonObject, findings: Findings): void {
  const known = new Set(objectsIn(before, 'schedulingGates').map((gate) => textIn(gate, 'name')));
  for (const [index, gate] of objectsIn(next, 'schedulingGates').entries()) {
    const name = textIn(gate, 'name');
    if (known.has(name)) continue;
    findings.forbidden(
      `spec.schedulingGates[${index}].name`,
      `only deletion is allowed, but found new scheduling gate '${name}'`,
    );
  }
}

function validateFixedFields(next: JsonObject, before: JsonObject, findings: Findings): void {
  const fixed = withoutUpdatable(next, before);
  if (equalJson(fixed, before)) return;
  const changed = [...new Set([...Object.keys(fixed), ...Object.keys(before)])]
    .filter((field) => !equalJson(fixed[field], before[field]))
    .map((field) => `spec.${field}`);
  findings.forbidden(
    'spec',
    `pod updates may not change fields other than ${UPDATABLE}\nchanged: ${changed.sort().join(', ')}`,
  );
}

/** The new spec with every field that may change as it was before. */
function withoutUpdatable(next: JsonObject, before: JsonObject): JsonObject {
  const fixed: JsonObject = { ...next };
  for (const field of ['activeDeadlineSeconds', 'tolerations', 'schedulingGates'] as const) {
    fixed[field] = before[field];
  }
  for (const list of ['containers', 'initContainers'] as const) {
    if (!isSet(next, list)) continue;
    const images = objectsIn(before, list).map(({ image }) => image);
    fixed[list] = objectsIn(next, list).map((container, index) =>
      Object.assign({}, container, { image: images[index] }),
    );
  }
  const was = numberIn(before, 'terminationGracePeriodSeconds') ?? 0;
  if (was < 0 && numberIn(next, 'terminationGracePeriodSeconds') === 1) {
    fixed['terminationGracePeriodSeconds'] = was;
  }
  return fixed;
}

function validateQosClass(pod: StoredObject, previous: StoredObject, findings: Findings): void {
  const is = textIn(objectIn(pod, 'status'), 'qosClass');
  const was = textIn(objectIn(previous, 'status'), 'qosClass');
  if (is !== was) findings.invalid('status.qosClass', is, 'field is immutable');
}
