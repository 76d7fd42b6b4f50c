import type { User } from './user.ts';

/** A rule of a ClusterRole; `*` matches everything. */
export interface PolicyRule {
  readonly verbs: readonly string[];
  readonly apiGroups?: readonly string[];
  /** `pods`, `pods/log`, or `*`+`/scale` for the scale of every resource. */
  readonly resources?: readonly string[];
  /** Object names; empty or absent matches all requests. */
  readonly resourceNames?: readonly string[];
  /** Non-resource paths, or prefixes of them: `/metrics`, `/debug/*`. */
  readonly nonResourceURLs?: readonly string[];
}

/** The action of a request, for authorization. */
export type Action =
  | {
      readonly kind: 'resource';
      readonly verb: string;
      /** Empty for the core group. */
      readonly group: string;
      /** Plural name. */
      readonly resource: string;
      readonly subresource: string;
      /** Empty for cluster-scoped resources and for all namespaces. */
      readonly namespace: string;
      readonly name: string;
    }
  | { readonly kind: 'path'; readonly verb: string; readonly path: string };

/** The result of an authorization. */
export interface Decision {
  readonly allowed: boolean;
  /** The binding that allows the action, or the roles that bindings name and that do not exist. */
  readonly reason: string;
}

/** The rules of a user, and the roles that could not be resolved. */
export interface ResolvedRules {
  readonly rules: readonly PolicyRule[];
  /** `clusterrole.rbac.authorization.k8s.io "reader" not found` */
  readonly problems: readonly string[];
}

/** Reference of a binding to its role. */
export interface RoleRef {
  readonly kind: string;
  readonly name: string;
}

/** Decides what users may do. */
export interface Authorizer {
  decide(user: User, action: Action): Decision;
  /** Decides on an action of a request, and records that the user needs the permission. */
  authorize(user: User, action: Action): Decision;
  /** The same for a write of `granted` rules, which needs no permission for the action if the user has these rules. */
  authorizeGrant(user: User, action: Action, granted: readonly PolicyRule[]): Decision;
  allows(user: User, action: Action): boolean;
  rulesOf(user: User, namespace: string): ResolvedRules;
  /** Returns the rules of a role, or the error if it does not exist. */
  rulesOfRole(role: RoleRef, namespace: string): readonly PolicyRule[] | string;
}

/** Whether a rule allows an action, as in RBAC. */
export function ruleCovers(rule: PolicyRule, action: Action): boolean {
  if (!includes(rule.verbs, action.verb)) return false;
  if (action.kind === 'path') return coversPath(rule.nonResourceURLs ?? [], action.path);
  const { resource, subresource, name } = action;
  const { apiGroups = [], resources = [], resourceNames = [] } = rule;
  const full = subresource ? `${resource}/${subresource}` : resource;
  return (
    includes(apiGroups, action.group) &&
    (includes(resources, full) || (subresource !== '' && resources.includes(`*/${subresource}`))) &&
    (resourceNames.length === 0 || resourceNames.includes(name))
  );
}

/** Whether one of the patterns of non-resource paths matches a path. */
export function coversPath(patterns: readonly string[], path: string): boolean {
  return patterns.some(
    (pattern) =>
      pattern === path || (pattern.endsWith('*') && path.startsWith(pattern.replace(/\*+$/, ''))),
  );
}

function includes(granted: readonly string[], asked: string): boolean {
  return granted.includes('*') || granted.includes(asked);
}
