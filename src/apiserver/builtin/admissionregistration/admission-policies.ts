import { objectIn, textIn } from '../../../util/json-value.ts';
import { equalJson } from '../../../api/equal.ts';
import type { PolicyExpression } from '../../../cel/policy-environment.ts';
import { PolicyEnvironment } from '../../../cel/policy-environment.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';
import { column, columns, count } from '../../table/column.ts';
import { POLICY_TRAITS, matchDefaults } from './match-defaults.ts';
import { authorizeParamKind } from './policy-authorization.ts';
import { staticNameWarnings, validateStaticName } from './static-names.ts';
import { validateRuleGroups } from './webhook-configurations.ts';
import type { BuiltinKind, KindTraits } from '../shared/builtin-kind.ts';
import { STATUS_ONLY } from '../shared/builtin-kind.ts';

const PARAM_KIND = column('ParamKind', 'Kind of the parameters.', (policy) => {
  const kind = objectIn(objectIn(policy, 'spec'), 'paramKind');
  return kind ? `${textIn(kind, 'apiVersion')}/${textIn(kind, 'kind')}` : '<unset>';
});

const ADMISSION_POLICY = {
  ...POLICY_TRAITS,
  hooks: { authorize: authorizeParamKind },
  validate,
  defaults: { 'spec.failurePolicy': 'Fail', ...matchDefaults('spec.matchConstraints') },
} satisfies KindTraits;

export const MUTATING_ADMISSION_POLICY: BuiltinKind = {
  resource: 'admissionregistration.k8s.io/mutatingadmissionpolicies',
  ...ADMISSION_POLICY,
  columns: columns(count('Mutations', 'spec.mutations'), PARAM_KIND),
  warnings: staticNameWarnings,
};

export const VALIDATING_ADMISSION_POLICY: BuiltinKind = {
  resource: 'admissionregistration.k8s.io/validatingadmissionpolicies',
  ...STATUS_ONLY,
  ...ADMISSION_POLICY,
  columns: columns(count('Validations', 'spec.validations'), PARAM_KIND),
  warnings: staticNameWarnings,
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
