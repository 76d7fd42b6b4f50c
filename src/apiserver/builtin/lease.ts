import type { StoredObject } from '../resource-definition.ts';
import type { FieldError } from '../../api/field-error.ts';
import type { KindTraits } from './definition.ts';
import { numberIn, objectIn, textIn } from './fields.ts';
import { Findings } from './findings.ts';

export const LEASE: KindTraits = {
  unconditionalUpdate: false,
  createOnUpdate: true,
  hooks: { validate },
};

function validate(lease: StoredObject): readonly FieldError[] {
  const findings = new Findings();
  const spec = objectIn(lease, 'spec') ?? {};
  const duration = numberIn(spec, 'leaseDurationSeconds');
  if (duration !== undefined && duration <= 0) {
    findings.invalid('spec.leaseDurationSeconds', duration, 'must be greater than 0');
  }
  findings.requireNonNegative(spec, 'leaseTransitions', 'spec');
  if (textIn(spec, 'preferredHolder') !== '' && textIn(spec, 'strategy') === '') {
    findings.forbidden('spec.preferredHolder', 'may only be specified if `strategy` is defined');
  }
  return findings.errors;
}
