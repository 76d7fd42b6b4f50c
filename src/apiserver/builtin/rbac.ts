import { equalJson } from '../../api/equal.ts';
import { nameProblems } from '../object-names.ts';
import { requireBindingRights, requireRoleRights } from '../privilege-escalation.ts';
import type { ApiObject, ResourceHooks, StoredObject } from '../resource-definition.ts';
import { fieldError } from '../../api/field-error.ts';
import type { FieldError } from '../../api/field-error.ts';
import type { JsonObject } from '../schema/json-value.ts';
import type { KindTraits } from './definition.ts';
import { listIn, objectIn, objectsIn, setDefault, textIn } from './fields.ts';
import { Findings } from './findings.ts';
import { isOperator, requirementsOf, textsIn } from './template-validation.ts';

const GROUP = 'rbac.authorization.k8s.io';

const COMMON = { nameFormat: 'pathSegment', createOnUpdate: true } as const;

export const ROLE: KindTraits = {
  ...COMMON,
  hooks: roleHooks('roles'),
};

export const CLUSTER_ROLE: KindTraits = {
  ...COMMON,
  hooks: roleHooks('clusterroles'),
};

export const ROLE_BINDING: KindTraits = {
  ...COMMON,
  hooks: bindingHooks('rolebindings'),
};

export const CLUSTER_ROLE_BINDING: KindTraits = {
  ...COMMON,
  hooks: bindingHooks('clusterrolebindings'),
};

function roleHooks(plural: 'roles' | 'clusterroles'): ResourceHooks {
  // As upstream, which always writes the list, and an empty one as null.
  const settle = (role: ApiObject) => {
    if (equalJson(role['rules'], [])) role['rules'] = null;
  };
  return {
    applyDefaults: (role) => {
      role['rules'] ??= null;
    },
    prepareForCreate: (role, context) => {
      settle(role);
      requireRoleRights(plural, context, role);
    },
    prepareForUpdate: (role, previous, context) => {
      settle(role);
      requireRoleRights(plural, context, role, previous);
    },
    validate: (role) => {
      const findings = new Findings();
      const rules = objectsIn(role, 'rules');
      for (const [index, rule] of rules.entries()) {
        validateRule(rule, plural === 'roles', `rules[${index}]`, findings);
      }
      const aggregation = objectIn(role, 'aggregationRule');
      if (aggregation && listIn(aggregation, 'clusterRoleSelectors').length === 0) {
        findings.required(
          'aggregationRule.clusterRoleSelectors',
          'at least one clusterRoleSelector required if aggregationRule is non-nil',
        );
      }
      for (const [index, selector] of objectsIn(aggregation, 'clusterRoleSelectors').entries()) {
        validateRoleSelector(selector, `aggregationRule.clusterRoleSelectors[${index}]`, findings);
      }
      for (const [index, rule] of rules.entries()) {
        if (listIn(rule, 'verbs').length === 0) findings.required(`rules[${index}].verbs`);
      }
      return findings.errors;
    },
  };
}

function validateRule(
  rule: JsonObject,
  isNamespaced: boolean,
  path: string,
  findings: Findings,
): void {
  const has = (field: string) => listIn(rule, field).length > 0;
  if (has('nonResourceURLs')) {
    const wrong = (detail: string) =>
      findings.invalid(`${path}.nonResourceURLs`, rule['nonResourceURLs'], detail);
    if (isNamespaced) wrong('namespaced rules cannot apply to non-resource URLs');
    if (has('apiGroups') || has('resources') || has('resourceNames')) {
      wrong('rules cannot apply to both regular resources and non-resource URLs');
    }
    return;
  }
  if (!has('apiGroups')) {
    findings.required(`${path}.apiGroups`, 'resource rules must supply at least one api group');
  }
  if (!has('resources')) {
    findings.required(`${path}.resources`, 'resource rules must supply at least one resource');
  }
}

function validateRoleSelector(selector: JsonObject, path: string, findings: Findings): void {
  const expressions = objectsIn(selector, 'matchExpressions');
  for (const [index, expression] of expressions.entries()) {
    const operator = textIn(expression, 'operator');
    if (isOperator(operator)) continue;
    const field = `${path}.matchExpressions[${index}].operator`;
    findings.invalid(field, operator, 'not a valid selector operator');
  }
  if (requirementsOf(textsIn(selector, 'matchLabels'), expressions)) return;
  findings.invalid(path, selector, 'invalid label selector.');
}

function bindingHooks(plural: 'rolebindings' | 'clusterrolebindings'): ResourceHooks {
  return {
    prepareForCreate: (binding, context) => requireBindingRights(plural, context, binding),
    prepareForUpdate: (binding, previous, context) =>
      requireBindingRights(plural, context, binding, previous),
    applyDefaults: applyBindingDefaults,
    validate: (binding) => validateBinding(binding, plural === 'rolebindings'),
    validateUpdate: (next, previous) => {
      const findings = new Findings();
      if (!equalJson(next['roleRef'], previous['roleRef'])) {
        findings.invalid('roleRef', inGo(objectIn(next, 'roleRef') ?? {}), 'field is immutable');
      }
      return findings.errors;
    },
  };
}

/** As a server shows what it has decoded. */
function inGo(roleRef: JsonObject): JsonObject {
  const { apiGroup = '', kind = '', name = '' } = roleRef;
  return { APIGroup: apiGroup, Kind: kind, Name: name };
}

function applyBindingDefaults(binding: ApiObject): void {
  const roleRef = objectIn(binding, 'roleRef');
  if (roleRef) setDefault(roleRef, 'apiGroup', GROUP);
  for (const subject of objectsIn(binding, 'subjects')) {
    if (['User', 'Group'].includes(textIn(subject, 'kind'))) setDefault(subject, 'apiGroup', GROUP);
  }
}

function validateBinding(binding: StoredObject, isNamespaced: boolean): readonly FieldError[] {
  const findings = new Findings();
  const roleRef = objectIn(binding, 'roleRef') ?? {};
  requireAmong(roleRef, 'apiGroup', [GROUP], 'roleRef', findings);
  const kinds = isNamespaced ? ['Role', 'ClusterRole'] : ['ClusterRole'];
  requireAmong(roleRef, 'kind', kinds, 'roleRef', findings);
  findings.requireFormat(roleRef, 'name', 'pathSegment', 'roleRef');
  for (const [index, subject] of objectsIn(binding, 'subjects').entries()) {
    validateSubject(subject, isNamespaced, `subjects[${index}]`, findings);
  }
  for (const [index, subject] of objectsIn(binding, 'subjects').entries()) {
    findings.requireText(subject, 'name', `subjects[${index}]`);
  }
  findings.requireText(roleRef, 'name', 'roleRef');
  return findings.errors;
}

function validateSubject(
  subject: JsonObject,
  isNamespaced: boolean,
  path: string,
  findings: Findings,
): void {
  const name = textIn(subject, 'name');
  switch (textIn(subject, 'kind')) {
    case 'ServiceAccount':
      if (name !== '') {
        for (const problem of nameProblems(name, 'dns1123Subdomain')) {
          findings.invalid(`${path}.name`, name, problem);
        }
      }
      requireAmong(subject, 'apiGroup', [''], path, findings);
      if (!isNamespaced) findings.requireText(subject, 'namespace', path);
      break;
    case 'User':
    case 'Group':
      requireAmong(subject, 'apiGroup', [GROUP], path, findings);
      break;
    default:
      requireAmong(subject, 'kind', ['ServiceAccount', 'User', 'Group'], path, findings);
  }
}

/** The text of a field must be one of these, also if it is empty. */
function requireAmong(
  parent: JsonObject,
  field: string,
  supported: readonly string[],
  path: string,
  findings: Findings,
): void {
  const value = textIn(parent, field);
  if (supported.includes(value)) return;
  findings.errors.push(fieldError.notSupported(`${path}.${field}`, value, supported));
}
