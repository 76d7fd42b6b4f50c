import type { StoredObject } from '../resource-definition.ts';
import type { FieldError } from '../../api/field-error.ts';
import { Verbatim } from '../../api/field-error.ts';
import type { JsonObject } from '../schema/json-value.ts';
import type { KindTraits } from './definition.ts';
import { isSet, objectIn, objectsIn, textIn } from './fields.ts';
import { Findings } from './findings.ts';

const OPERATORS: ReadonlySet<string> = new Set(['In', 'NotIn', 'Exists', 'DoesNotExist']);
const POLICIES = ['AlwaysAllow', 'IfHealthyBudget'];

export const POD_DISRUPTION_BUDGET: KindTraits = {
  tracksGeneration: true,
  unconditionalUpdate: false,
  hooks: { validate },
};

function validate(budget: StoredObject): readonly FieldError[] {
  const findings = new Findings();
  const spec = objectIn(budget, 'spec') ?? {};
  if (isSet(spec, 'minAvailable') && isSet(spec, 'maxUnavailable')) {
    findings.invalid('spec', inGo(spec), 'minAvailable and maxUnavailable cannot be both set');
  }
  validateAmount(spec, 'minAvailable', findings);
  validateAmount(spec, 'maxUnavailable', findings);
  for (const [index, requirement] of objectsIn(
    objectIn(spec, 'selector'),
    'matchExpressions',
  ).entries()) {
    const operator = textIn(requirement, 'operator');
    if (OPERATORS.has(operator)) continue;
    const path = `spec.selector.matchExpressions[${index}].operator`;
    findings.invalid(path, operator, 'not a valid selector operator');
  }
  findings.requireOneOf(spec, 'unhealthyPodEvictionPolicy', POLICIES, 'spec');
  return findings.errors;
}

/** The spec with the names of Go's fields, which upstream reports. */
function inGo(spec: JsonObject): Verbatim {
  const { minAvailable, selector, maxUnavailable, unhealthyPodEvictionPolicy } = spec;
  return new Verbatim(
    JSON.stringify({
      MinAvailable: minAvailable,
      Selector: selector ?? null,
      MaxUnavailable: maxUnavailable,
      UnhealthyPodEvictionPolicy: unhealthyPodEvictionPolicy ?? null,
    }),
  );
}

function validateAmount(spec: JsonObject, field: string, findings: Findings): void {
  const value = spec[field];
  const path = `spec.${field}`;
  if (typeof value === 'string' && !/^\d+%$/.test(value)) {
    findings.invalid(
      path,
      value,
      "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
    );
  } else if (typeof value === 'string' && Number.parseInt(value, 10) > 100) {
    findings.invalid(path, value, 'must not be greater than 100%');
  }
  findings.requireNonNegative(spec, field, 'spec');
}
