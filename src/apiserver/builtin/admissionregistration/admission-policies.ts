import { objectIn, textIn } from '../../../util/json-value.ts';
import { equalJson } from '../../../api/equal.ts';
import { qualifiedNameProblems } from '../../../api/object-names.ts';
import type { PolicyExpression } from '../../../cel/policy-environment.ts';
import { PolicyEnvironment } from '../../../cel/policy-environment.ts';
import { formatType } from '../../../cel/values/type.ts';
import type { CheckSteps } from '../../objects/check-steps.ts';
import { PART_WEIGHT } from '../../objects/check-steps.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';
import { column, columns, count } from '../../table/column.ts';
import { POLICY_TRAITS, matchDefaults } from './match-defaults.ts';
import {
  reportCompilation,
  validateMatchConditions,
  validateMatchResources,
  validateParamKind,
} from './match-validation.ts';
import { authorizeParamKind } from './policy-authorization.ts';
import { staticNameWarnings, validateStaticName } from './static-names.ts';
import type { BuiltinKind, KindTraits } from '../shared/builtin-kind.ts';
import { STATUS_ONLY } from '../shared/builtin-kind.ts';
import { validateConditions } from '../shared/status-validation.ts';
import { parseJsonPath } from '../../table/json-path.ts';

const PARAM_KIND = column('ParamKind', 'Kind of the parameters.', (policy) => {
  const kind = objectIn(objectIn(policy, 'spec'), 'paramKind');
  return kind ? `${textIn(kind, 'apiVersion')}/${textIn(kind, 'kind')}` : '<unset>';
});

const ADMISSION_POLICY = {
  ...POLICY_TRAITS,
  hooks: { authorize: authorizeParamKind },
  validateInSteps: validate,
  defaults: { 'spec.failurePolicy': 'Fail', ...matchDefaults('spec.matchConstraints') },
} satisfies KindTraits;

export const MUTATING_ADMISSION_POLICY: BuiltinKind = {
  resource: 'admissionregistration.k8s.io/mutatingadmissionpolicies',
  revalidatesName: 'object',
  ...ADMISSION_POLICY,
  columns: columns(count('Mutations', 'spec.mutations'), PARAM_KIND),
  warnings: staticNameWarnings,
};

export const VALIDATING_ADMISSION_POLICY: BuiltinKind = {
  resource: 'admissionregistration.k8s.io/validatingadmissionpolicies',
  revalidatesName: 'object',
  ...STATUS_ONLY,
  ...ADMISSION_POLICY,
  *validateInSteps(policy, previous) {
    yield* validate(policy, previous);
    validatePolicyStatus(policy.in('status'));
  },
  columns: columns(count('Validations', 'spec.validations'), PARAM_KIND),
  warnings: staticNameWarnings,
};

function validatePolicyStatus(status: CheckedObject): void {
  for (const warning of status.in('typeChecking').items('expressionWarnings')) {
    warning.requireText('warning');
    const field = warning.text('fieldRef').trim();
    if (field === '') {
      warning.required('fieldRef');
      continue;
    }
    try {
      // A path in braces need not start with a dot.
      parseJsonPath(/^\w/.test(field) ? `.${field}` : field);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      warning.invalid('fieldRef', `invalid JSONPath: ${error.message}`, field);
    }
  }
  validateConditions(status);
}

/** Reports expressions that are missing or do not compile. Those of an unchanged spec were checked before. */
function* validate(
  policy: CheckedObject<StoredObject>,
  previous: StoredObject | undefined,
): CheckSteps {
  validateStaticName(policy, previous);
  const spec = policy.in('spec');
  if (previous && equalJson(spec.value, previous['spec'])) return;
  const environment = new PolicyEnvironment(spec.has('paramKind'));
  spec.requireSupported('failurePolicy', ['Fail', 'Ignore']);
  const paramKind = spec.get('paramKind');
  if (paramKind) validateParamKind(paramKind);
  const isMutating = policy.value.kind !== 'ValidatingAdmissionPolicy';
  const constraints = spec.get('matchConstraints');
  if (!constraints) spec.required('matchConstraints');
  else {
    validateMatchResources(constraints, isMutating);
    if (constraints.list('resourceRules').length === 0) constraints.required('resourceRules');
  }
  validateMatchConditions(spec, environment);
  for (const variable of spec.items('variables')) {
    const name = variable.text('name');
    if (name.trim() === '') variable.required('name', 'name is not specified');
    else if (!/^[_a-zA-Z]\w*$/.test(name) || RESERVED.has(name)) {
      variable.invalid('name', 'must be a valid CEL identifier');
    }
    yield* check(variable, 'expression', (source) => environment.declare(name, source));
  }
  if (isMutating) yield* validateMutations(spec, environment);
  else yield* validateValidations(policy, spec, environment);
}

function* check(
  item: CheckedObject,
  field: string,
  compile: (source: string) => PolicyExpression,
): CheckSteps {
  const source = item.text(field);
  yield PART_WEIGHT + source.length;
  if (source.trim() !== '') reportCompilation(item, field, compile(source));
  else if (field !== 'messageExpression') item.required(field, `${field} is not specified`);
  else if (source !== '') item.invalid(field, 'must be non-empty if specified');
}

const REASONS = ['Forbidden', 'Invalid', 'RequestEntityTooLarge'];

function* validateValidations(
  policy: CheckedObject<StoredObject>,
  spec: CheckedObject,
  environment: PolicyEnvironment,
): CheckSteps {
  for (const validation of spec.items('validations')) {
    yield* check(validation, 'expression', (source) => environment.compile(source, 'bool'));
    yield* check(validation, 'messageExpression', (source) =>
      environment.compile(source, 'string'),
    );
    const message = validation.text('message');
    if (message !== '' && message.trim() === '') {
      validation.invalid('message', 'must be non-empty if specified');
    } else if (/[\n\r]/.test(message.trim())) {
      validation.invalid('message', 'must not contain line breaks');
    }
    validation.requireSupported('reason', REASONS);
  }
  const keys = new Set<string>();
  for (const annotation of spec.items('auditAnnotations')) {
    const key = annotation.text('key');
    const whole = `${policy.value.metadata.name}/${key}`;
    annotation.problems('key', qualifiedNameProblems(whole), whole);
    yield* check(annotation, 'valueExpression', (source) => compileValue(source, environment));
    if (keys.has(key)) annotation.duplicate('key', key);
    keys.add(key);
  }
  const lists = ['validations', 'auditAnnotations'] as const;
  if (lists.some((list) => spec.list(list).length > 0)) return;
  const why = 'validations or auditAnnotations must contain at least one item';
  for (const list of lists) spec.required(list, why);
}

function compileValue(source: string, environment: PolicyEnvironment): PolicyExpression {
  const expression = environment.compile(source, 'any');
  const { compiled } = expression;
  if ('error' in compiled || ['string', 'null', 'dyn'].includes(compiled.type.kind)) {
    return expression;
  }
  const type = formatType(compiled.type);
  const error = `must evaluate to one of [string null_type] but got ${type}`;
  return { source, compiled: { error } };
}

/** The fields of mutations by their types, and the types of their results. */
const PATCHES = {
  JSONPatch: { field: 'jsonPatch', result: 'list(JSONPatch)' },
  ApplyConfiguration: { field: 'applyConfiguration', result: 'Object' },
} as const;

function* validateMutations(spec: CheckedObject, environment: PolicyEnvironment): CheckSteps {
  for (const mutation of spec.items('mutations')) {
    const type = mutation.text('patchType');
    mutation.requireText('patchType');
    mutation.requireOneOf('patchType', Object.keys(PATCHES).sort());
    for (const [name, { field, result }] of Object.entries(PATCHES)) {
      const patch = mutation.get(field);
      if (!(type in PATCHES)) continue;
      if (name !== type) {
        const why = `must not be specified when patchType is ${type}`;
        if (patch) mutation.invalid(field, why, `{${field}}`);
        continue;
      }
      if (!patch) {
        mutation.required(field, `must be specified when patchType is ${type}`);
        continue;
      }
      const source = patch.text('expression');
      yield PART_WEIGHT + source.length;
      if (source.trim() === '') patch.required('expression');
      else reportCompilation(patch, 'expression', environment.compile(source, result));
    }
  }
  if (spec.list('mutations').length === 0) {
    spec.required('mutations', 'mutations must contain at least one item');
  }
  spec.requireText('reinvocationPolicy');
  spec.requireOneOf('reinvocationPolicy', ['IfNeeded', 'Never']);
}

const RESERVED: ReadonlySet<string> = new Set(
  'true false null in as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
);
