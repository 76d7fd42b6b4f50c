import { objectIn, objectsIn, setDefault, textIn } from '../../util/json-value.ts';
import { equalJson } from '../../api/equal.ts';
import { requireBindingRights, requireRoleRights } from '../auth/privilege-escalation.ts';
import type { ApiObject, ResourceHooks } from '../objects/resource-definition.ts';
import { checked } from '../objects/checked-object.ts';
import type { CheckedObject } from '../objects/checked-object.ts';
import type { KindTraits } from './definition.ts';
import { requireOperators, selectorRequirements, textMapIn } from './template-validation.ts';

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
    validate: checked((role) => {
      const rules = role.items('rules');
      for (const rule of rules) validateRule(rule, plural === 'roles');
      const aggregation = role.get('aggregationRule');
      const selectors = aggregation?.items('clusterRoleSelectors') ?? [];
      if (selectors.length === 0) {
        const why = 'at least one clusterRoleSelector required if aggregationRule is non-nil';
        aggregation?.required('clusterRoleSelectors', why);
      }
      for (const selector of selectors) validateRoleSelector(selector);
      for (const rule of rules) if (rule.list('verbs').length === 0) rule.required('verbs');
    }),
  };
}

function validateRule(rule: CheckedObject, isNamespaced: boolean): void {
  const has = (field: string) => rule.list(field).length > 0;
  if (has('nonResourceURLs')) {
    const field = 'nonResourceURLs';
    if (isNamespaced) rule.invalid(field, 'namespaced rules cannot apply to non-resource URLs');
    if (has('apiGroups') || has('resources') || has('resourceNames')) {
      rule.invalid(field, 'rules cannot apply to both regular resources and non-resource URLs');
    }
    return;
  }
  if (!has('apiGroups')) {
    rule.required('apiGroups', 'resource rules must supply at least one api group');
  }
  if (!has('resources')) {
    rule.required('resources', 'resource rules must supply at least one resource');
  }
}

function validateRoleSelector(selector: CheckedObject): void {
  requireOperators(selector);
  const expressions = selector.items('matchExpressions').map(({ value }) => value);
  if (selectorRequirements(textMapIn(selector.value, 'matchLabels'), expressions)) return;
  selector.invalid('', 'invalid label selector.', selector.value);
}

function bindingHooks(plural: 'rolebindings' | 'clusterrolebindings'): ResourceHooks {
  return {
    prepareForCreate: (binding, context) => requireBindingRights(plural, context, binding),
    prepareForUpdate: (binding, previous, context) =>
      requireBindingRights(plural, context, binding, previous),
    applyDefaults: applyBindingDefaults,
    validate: checked((binding) => validateBinding(binding, plural === 'rolebindings')),
    validateUpdate: checked((next, previous) => {
      if (equalJson(next.value['roleRef'], previous['roleRef'])) return;
      // As a server shows what it has decoded.
      const { apiGroup = '', kind = '', name = '' } = next.in('roleRef').value;
      const shown = { APIGroup: apiGroup, Kind: kind, Name: name };
      next.invalid('roleRef', 'field is immutable', shown);
    }),
  };
}

function applyBindingDefaults(binding: ApiObject): void {
  const roleRef = objectIn(binding, 'roleRef');
  if (roleRef) setDefault(roleRef, 'apiGroup', GROUP);
  for (const subject of objectsIn(binding, 'subjects')) {
    if (['User', 'Group'].includes(textIn(subject, 'kind'))) setDefault(subject, 'apiGroup', GROUP);
  }
}

function validateBinding(binding: CheckedObject, isNamespaced: boolean): void {
  const roleRef = binding.in('roleRef');
  requireAmong(roleRef, 'apiGroup', [GROUP]);
  requireAmong(roleRef, 'kind', isNamespaced ? ['Role', 'ClusterRole'] : ['ClusterRole']);
  roleRef.requireFormat('name', 'pathSegment');
  const subjects = binding.items('subjects');
  for (const subject of subjects) validateSubject(subject, isNamespaced);
  for (const subject of subjects) subject.requireText('name');
  roleRef.requireText('name');
}

function validateSubject(subject: CheckedObject, isNamespaced: boolean): void {
  switch (subject.text('kind')) {
    case 'ServiceAccount':
      subject.requireFormat('name', 'dns1123Subdomain');
      requireAmong(subject, 'apiGroup', ['']);
      if (!isNamespaced) subject.requireText('namespace');
      break;
    case 'User':
    case 'Group':
      requireAmong(subject, 'apiGroup', [GROUP]);
      break;
    default:
      requireAmong(subject, 'kind', ['ServiceAccount', 'User', 'Group']);
  }
}

/** The text of a field must be one of these, also if it is empty. */
function requireAmong(object: CheckedObject, field: string, supported: readonly string[]): void {
  const value = object.text(field);
  if (!supported.includes(value)) object.notSupported(field, supported, value);
}
