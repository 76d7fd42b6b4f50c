import type { ApiObject, StoredObject } from '../resource-definition.ts';
import type { FieldError } from '../../api/field-error.ts';
import type { KindTraits } from './definition.ts';
import { numberIn, textIn } from './fields.ts';
import { Findings } from './findings.ts';

/** Above this are the system's own. */
const HIGHEST_VALUE = 1_000_000_000;
const POLICIES = ['PreemptLowerPriority', 'Never'];

export const PRIORITY_CLASS: KindTraits = {
  defaults: { preemptionPolicy: 'PreemptLowerPriority' },
  hooks: {
    prepareForCreate,
    validate,
    validateUpdate,
  },
};

/** Its generation never grows. */
function prepareForCreate(object: ApiObject): void {
  object.metadata.generation = 1;
}

function validate(object: StoredObject): readonly FieldError[] {
  const findings = new Findings();
  const { name } = object.metadata;
  if (name.startsWith('system-')) {
    findings.forbidden(
      'metadata.name',
      `priority class names with 'system-' prefix are reserved for system use only. error: ${name} is not a known system priority class`,
    );
  } else if ((numberIn(object, 'value') ?? 0) > HIGHEST_VALUE) {
    findings.forbidden(
      'value',
      `maximum allowed value of a user defined priority is ${HIGHEST_VALUE}`,
    );
  }
  const policy = textIn(object, 'preemptionPolicy');
  if (!POLICIES.includes(policy)) {
    findings.notSupported('preemptionPolicy', policy, POLICIES);
  }
  return findings.errors;
}

function validateUpdate(next: StoredObject, previous: StoredObject): readonly FieldError[] {
  const findings = new Findings();
  if (next['value'] !== previous['value']) {
    findings.forbidden('value', 'may not be changed in an update.');
  }
  if (next['preemptionPolicy'] !== previous['preemptionPolicy']) {
    findings.invalid('preemptionPolicy', next['preemptionPolicy'], 'field is immutable');
  }
  return findings.errors;
}
