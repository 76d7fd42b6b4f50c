import { parseAllDocuments } from 'yaml';
import type { Permission } from '../../api/permission.ts';
import type { ReadFile } from '../manifests/pieces.ts';

/** A rule of a role, as the manifests have it. */
export interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

/** A part of the program, and what it needs. */
export interface Claim {
  /** `count`, `events` */
  readonly part: string;
  readonly rights: readonly Permission[];
}

/** What is going to run. */
export interface Plan {
  readonly controllers: readonly { readonly name: string; readonly isOnByDefault: boolean }[];
  /** Empty: all. */
  readonly namespaces: readonly string[];
  /** Something is served for which the cluster is asked who may read it. */
  readonly isGuarded?: boolean;
  /** Leases to hold, and where; absent: none. */
  readonly leases?: { readonly namespace: string; readonly names: readonly string[] } | undefined;
}

/**
 * Every right that the plan takes, by the roles of hack/deploy: those that an installation grants, no
 * more and no less.
 *
 * @param read finds files below hack/deploy
 */
export function claimsOf(read: ReadFile, plan: Plan): Claim[] {
  const { controllers, namespaces, leases, isGuarded = false } = plan;
  const everywhere = namespaces.length > 0 ? namespaces : [undefined];
  const own = controllers.map(({ name, isOnByDefault }): Claim => {
    const file = isOnByDefault ? `rbac/controllers/${name}.yaml` : `rbac/${name}/role.yaml`;
    return { part: name, rights: rightsOf(rulesIn(read(file)), everywhere) };
  });
  const events = rightsOf(
    rulesIn(read('rbac/events/events.yaml')),
    // Events about a Lease are where the Lease is.
    [...new Set([...everywhere, ...(leases && namespaces.length > 0 ? [leases.namespace] : [])])],
  );
  const reviews = isGuarded ? rulesIn(read('rbac/metrics/auth-role.yaml')) : [];
  const lease = rulesIn(read('rbac/identity/leader-election.yaml')).map((rule): Rule =>
    rule.resourceNames ? named(rule, leases?.names ?? []) : rule,
  );
  return [
    ...own,
    { part: 'events', rights: events },
    { part: 'endpoints', rights: rightsOf(reviews, [undefined]) },
    { part: 'leader election', rights: leases ? rightsOf(lease, [leases.namespace]) : [] },
  ].filter(({ rights }) => rights.length > 0);
}

/** The rule of the manifests, for objects of other names. */
function named(rule: Rule, resourceNames: readonly string[]): Rule {
  return { ...rule, resourceNames };
}

function rulesIn(text: string): Rule[] {
  return parseAllDocuments(text).flatMap((document) => {
    const { rules = [] } = document.toJS() as { readonly rules?: readonly Rule[] };
    return rules;
  });
}

function rightsOf(
  rules: readonly Rule[],
  namespaces: readonly (string | undefined)[],
): readonly Permission[] {
  return rules.flatMap(({ apiGroups, resources, resourceNames = [undefined], verbs }) =>
    namespaces.flatMap((namespace) =>
      apiGroups.flatMap((group) =>
        resources.flatMap((path) => {
          const [resource = '', subresource] = path.split('/');
          return resourceNames.flatMap((name) =>
            verbs.map((verb): Permission => ({
              verb,
              group,
              resource,
              ...(subresource !== undefined && { subresource }),
              ...(namespace !== undefined && { namespace }),
              ...(name !== undefined && { name }),
            })),
          );
        }),
      ),
    ),
  );
}
