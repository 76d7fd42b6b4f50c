import { compareText } from '../util/values.ts';
import { parseDocument, visit } from 'yaml';
import type { ToStringOptions } from 'yaml';

/** Rule of an RBAC role. */
export interface RoleRule {
  readonly verbs: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  /** Names of objects; absent for all. */
  readonly resourceNames?: readonly string[];
  readonly nonResourceURLs?: readonly string[];
}

/** Order of verbs in a rule. */
const VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'];

/** Format of the manifests. */
const FORMAT: ToStringOptions = { lineWidth: 0, flowCollectionPadding: false, singleQuote: true };

/**
 * Returns the permissions of rules, one for each verb and resource: `patch deployments.apps/status`. One with a name ends
 * with it: `bind clusterroles.rbac.authorization.k8s.io view`.
 */
export function permissionsOf(rules: readonly RoleRule[]): Set<string> {
  return new Set(
    rules.flatMap(
      ({
        verbs,
        apiGroups = [],
        resources = [],
        resourceNames = [undefined],
        nonResourceURLs = [],
      }) => [
        ...apiGroups.flatMap((group) =>
          resources.flatMap((path) =>
            verbs.flatMap((verb) =>
              // Requests need names only by choice; tests cannot show it.
              (VERBS.includes(verb) ? [undefined] : resourceNames).map((name) =>
                permissionOf(verb, group, path, name),
              ),
            ),
          ),
        ),
        ...nonResourceURLs.flatMap((path) => verbs.map((verb) => `${verb} ${path}`)),
      ],
    ),
  );
}

/** @param path resource with its subresource: `pods/log` */
export function permissionOf(verb: string, group: string, path: string, name?: string): string {
  const [resource = '', subresource] = path.split('/');
  return [
    `${verb} ${resource}`,
    ...(group ? ['.', group] : []),
    ...(subresource === undefined ? [] : ['/', subresource]),
    ...(name === undefined ? [] : [' ', name]),
  ].join('');
}

/** Returns the rules for permissions: one for each group and set of verbs. */
export function rulesOf(permissions: Iterable<string>): RoleRule[] {
  const verbs = new Map<string, string[]>();
  for (const permission of permissions) {
    const [verb = ''] = permission.split(' ', 1);
    const place = permission.slice(verb.length + 1);
    verbs.set(place, [...(verbs.get(place) ?? []), verb].toSorted(byVerb));
  }
  const rules = new Map<string, RoleRule>();
  for (const [place, some] of [...verbs].toSorted(([a], [b]) => compareText(a, b))) {
    const rule = ruleOf(place, some);
    const { resourceNames } = rule;
    // Names are merged for one resource, and resources without names.
    const id = JSON.stringify([rule.apiGroups, resourceNames && rule.resources, some]);
    const { resources = [], nonResourceURLs = [], resourceNames: names = [] } = rules.get(id) ?? {};
    rules.set(id, {
      ...rule,
      ...(resourceNames
        ? { resourceNames: [...names, ...resourceNames] }
        : rule.resources && { resources: [...resources, ...rule.resources] }),
      ...(rule.nonResourceURLs && {
        nonResourceURLs: [...nonResourceURLs, ...rule.nonResourceURLs],
      }),
    });
  }
  return [...rules.values()].toSorted((a, b) =>
    compareText(
      JSON.stringify([a.apiGroups, a.resources, a.resourceNames]),
      JSON.stringify([b.apiGroups, b.resources, b.resourceNames]),
    ),
  );
}

function byVerb(a: string, b: string): number {
  return VERBS.indexOf(a) - VERBS.indexOf(b);
}

function ruleOf(place: string, verbs: readonly string[]): RoleRule {
  if (place.startsWith('/')) return { nonResourceURLs: [place], verbs };
  // Values of extra fields of a user can have spaces.
  const [where = '', ...words] = place.split(' ');
  const name = words.length > 0 ? words.join(' ') : undefined;
  const [full = '', subresource] = where.split('/');
  const [resource = ''] = full.split('.');
  const path = subresource === undefined ? resource : `${resource}/${subresource}`;
  return {
    apiGroups: [full.slice(resource.length + 1)],
    resources: [path],
    ...(name !== undefined && { resourceNames: [name] }),
    verbs,
  };
}

/**
 * Returns the text of a manifest file whose ClusterRole has exactly the permissions, and all other text
 * unchanged. Rules that grant them already are not rewritten.
 *
 * @throws {Error} if the file has no ClusterRole, or several
 */
export function withPermissions(text: string, permissions: ReadonlySet<string>): string {
  const documents = text.split(/^---\n/m);
  const roles = documents.filter((each) => parseDocument(each).get('kind') === 'ClusterRole');
  const [role] = roles;
  if (role === undefined || roles.length > 1)
    throw new Error(`has ${roles.length} ClusterRoles instead of one`);
  const document = parseDocument(role);
  const { rules = [] } = document.toJS() as { readonly rules?: readonly RoleRule[] };
  const present = permissionsOf(rules ?? []);
  if (present.symmetricDifference(permissions).size === 0) return text;
  const created = document.createNode(rulesOf(permissions));
  visit(created, {
    Seq: (key, values) => {
      values.flow = key !== null;
    },
  });
  document.set('rules', created);
  return documents.map((each) => (each === role ? document.toString(FORMAT) : each)).join('---\n');
}
