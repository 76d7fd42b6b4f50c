import { equalJson } from '../../api/equal.ts';
import type { PolicyExpression } from '../../cel/policy-environment.ts';
import { PolicyEnvironment } from '../../cel/policy-environment.ts';
import type { StoredObject } from '../objects/resource-definition.ts';
import { checked } from '../objects/checked-object.ts';
import type { CheckedObject } from '../objects/checked-object.ts';
import { validateRuleGroups } from './admission-registration.ts';
import { validateStaticName } from './static-names.ts';
import type { KindTraits } from './definition.ts';
import { authorizeParamKind, authorizeParamRef } from './policy-authorization.ts';

/** Defaults of the `MatchResources` at a path. */
function matchDefaults(path: string): Readonly<Record<string, unknown>> {
  return {
    [`${path}.matchPolicy`]: 'Equivalent',
    [`${path}.namespaceSelector`]: {},
    [`${path}.objectSelector`]: {},
    [`${path}.resourceRules[].scope`]: '*',
    [`${path}.excludeResourceRules[].scope`]: '*',
  };
}

const TRAITS = { tracksGeneration: true, unconditionalUpdate: false } satisfies KindTraits;

export const ADMISSION_POLICY: KindTraits = {
  ...TRAITS,
  hooks: { validate: checked(validate), authorize: authorizeParamKind },
  defaults: { 'spec.failurePolicy': 'Fail', ...matchDefaults('spec.matchConstraints') },
};

export const POLICY_BINDING: KindTraits = {
  ...TRAITS,
  hooks: { validate: checked(validateStaticName), authorize: authorizeParamRef },
  defaults: matchDefaults('spec.matchResources'),
};

/** Reports expressions that are missing or do not compile. Those of an unchanged spec were checked before. */
function validate(policy: CheckedObject<StoredObject>, previous: StoredObject | undefined): void {
  validateStaticName(policy, previous);
  const spec = policy.in('spec');
  if (previous && equalJson(spec.value, previous['spec'])) return;
  const environment = new PolicyEnvironment(spec.has('paramKind'));
  const check = (
    list: string,
    field: string,
    compile: (source: string, item: CheckedObject) => PolicyExpression,
  ) => {
    for (const item of spec.items(list)) {
      const source = item.text(field);
      if (source.trim() === '') {
        if (field !== 'messageExpression') item.required(field, 'expression is not specified');
        continue;
      }
      const { compiled } = compile(source, item);
      if ('error' in compiled) item.invalid(field, compiled.error);
    }
  };
  check('variables', 'expression', (source, item) =>
    environment.declare(item.text('name'), source),
  );
  check('matchConditions', 'expression', (source) => environment.compile(source, 'bool'));
  check('validations', 'expression', (source) => environment.compile(source, 'bool'));
  check('validations', 'messageExpression', (source) => environment.compile(source, 'string'));
  check('auditAnnotations', 'valueExpression', (source) => environment.compile(source, 'any'));
  const constraints = spec.get('matchConstraints');
  if (!constraints) spec.required('matchConstraints');
  for (const list of ['resourceRules', 'excludeResourceRules']) {
    for (const rule of constraints?.items(list) ?? []) validateRuleGroups(rule);
  }
  if (policy.value.kind !== 'ValidatingAdmissionPolicy') {
    spec.requireText('reinvocationPolicy');
    spec.requireOneOf('reinvocationPolicy', ['IfNeeded', 'Never']);
    if (spec.list('mutations').length > 0) return;
    spec.required('mutations', 'mutations must contain at least one item');
    return;
  }
  const lists = ['validations', 'auditAnnotations'] as const;
  if (lists.some((list) => spec.list(list).length > 0)) return;
  const why = 'validations or auditAnnotations must contain at least one item';
  for (const list of lists) spec.required(list, why);
}
