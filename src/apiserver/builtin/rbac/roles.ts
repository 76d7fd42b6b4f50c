import { equalJson } from '../../../api/equal.ts';
import { requireRoleRights } from '../../auth/privilege-escalation.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import type { ApiObject } from '../../objects/resource-definition.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { validateLabelSelector } from '../shared/label-selector-validation.ts';

export const RBAC_TRAITS = { nameFormat: 'pathSegment', createOnUpdate: true } as const;

/** As upstream, the beginning of a generated name follows the rules of names. */
export function requireNamePrefix(object: CheckedObject): void {
  const metadata = object.in('metadata');
  const prefix = metadata.text('generateName');
  // The others are validated with the metadata.
  if (['.', '..'].includes(prefix)) metadata.invalid('generateName', `may not be '${prefix}'`);
}

export const CLUSTER_ROLE: BuiltinKind = roleKind('clusterroles');

export const ROLE: BuiltinKind = roleKind('roles');

function roleKind(plural: 'roles' | 'clusterroles'): BuiltinKind {
  // As upstream, which always writes the list, and an empty one as null.
  const settle = (role: ApiObject) => {
    if (equalJson(role['rules'], [])) role['rules'] = null;
  };
  return {
    resource: `rbac.authorization.k8s.io/${plural}`,
    ...RBAC_TRAITS,
    hooks: {
      applyDefaults: (role) => {
        role['rules'] ??= null;
      },
      requireRights: (role, previous, context) =>
        requireRoleRights(plural, context, role, previous),
      prepareForCreate: settle,
      prepareForUpdate: settle,
    },
    validate: (role) => {
      requireNamePrefix(role);
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
    },
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
  const count = selector.errors.length;
  validateLabelSelector(selector);
  // As upstream, which shows the selector that it could not parse.
  if (selector.errors.length > count) selector.invalid('', 'invalid label selector.', null);
}
