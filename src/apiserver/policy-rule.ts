/** What a user may do, as a ClusterRole's rule says it: `*` stands for everything. */
export interface PolicyRule {
  readonly verbs: readonly string[];
  readonly apiGroups?: readonly string[];
  /** `pods`, `pods/log`, or `*`+`/scale` for that of every resource. */
  readonly resources?: readonly string[];
  /** Empty or absent: any name, and none. */
  readonly resourceNames?: readonly string[];
  /** Paths that are no resource's: `/metrics`, or all that begin so: `/debug/*`. */
  readonly nonResourceURLs?: readonly string[];
}

/** What is to be allowed. */
export type Action =
  | {
      readonly kind: 'resource';
      readonly verb: string;
      /** Empty for the core group. */
      readonly group: string;
      /** Plural name. */
      readonly resource: string;
      readonly subresource: string;
      /** Empty: none, or all. */
      readonly namespace: string;
      readonly name: string;
    }
  | { readonly kind: 'path'; readonly verb: string; readonly path: string };

/** Whether a rule is about an action, as RBAC decides it. */
export function covers(rule: PolicyRule, action: Action): boolean {
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

function coversPath(patterns: readonly string[], path: string): boolean {
  return patterns.some(
    (pattern) =>
      pattern === path || (pattern.endsWith('*') && path.startsWith(pattern.slice(0, -1))),
  );
}

function includes(granted: readonly string[], asked: string): boolean {
  return granted.includes('*') || granted.includes(asked);
}
