import type { PolicyRule } from '../../api/builtin.ts';
import { isApiError } from '../../api/api-error.ts';
import { canICommand, missingRule } from '../../api/permission.ts';
import type { Permission } from '../../api/permission.ts';
import type { Client } from '../../client/client.ts';
import { isRecord } from '../../util/values.ts';
import type { WebhookRules } from '../../webhook/manifests.ts';
import { errorText } from '../common/errors.ts';
import { failed, ok, skipped, warning } from './check-result.ts';
import type { CheckResult } from './check-result.ts';
import { parseAllDocuments } from 'yaml';
import type { ReadManifest } from '../program/installation.ts';

/**
 * No request is made for the finalizers subresource. The admission plugin checks the permission when an
 * object with a blocking owner reference is created. The API does not show whether the plugin is enabled.
 */
const ASKED_BY_ADMISSION =
  'no owned object can be created if the admission plugin OwnerReferencesPermissionEnforcement is enabled, as in OpenShift';

/** Maximum number of concurrent access reviews. */
const AT_ONCE = 10;

/**
 * Checks by SelfSubjectAccessReviews that the server grants all `required` permissions.
 *
 * @param user the user name as the server knows it, if available
 */
export async function checkPermissions(
  client: Client,
  { part, permissions }: RequiredPermissions,
  user: string | undefined,
  signal: AbortSignal,
): Promise<CheckResult[]> {
  const check = `permissions of ${part}`;
  const missing: Permission[] = [];
  try {
    for (let at = 0; at < permissions.length; at += AT_ONCE) {
      const some = permissions.slice(at, at + AT_ONCE);
      const allowed = await Promise.all(
        some.map((permission) => isAllowed(client, permission, signal)),
      );
      missing.push(...some.filter((_, index) => !allowed[index]));
    }
  } catch (error) {
    signal.throwIfAborted();
    return [reviewFailure(check, error)];
  }
  if (missing.length === 0)
    return [ok(check, `${permissions.length} of ${permissions.length} granted`)];
  return groupsOf(missing).map((group) => missingPermissions(check, group, user));
}

async function isAllowed(
  client: Client,
  permission: Permission,
  signal: AbortSignal,
): Promise<boolean> {
  const answer = await client.raw({
    method: 'POST',
    path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
    body: {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes: permission },
    },
    signal,
  });
  const status = isRecord(answer) ? answer['status'] : undefined;
  return isRecord(status) && status['allowed'] === true;
}

function reviewFailure(check: string, error: unknown): CheckResult {
  if (isApiError(error, 'forbidden')) {
    return failed(
      check,
      'no permission to create SelfSubjectAccessReviews',
      'Set credentials in the kubeconfig. Verify: kubectl auth whoami',
    );
  }
  if (isApiError(error, 'notFound'))
    return skipped(check, 'the server does not serve SelfSubjectAccessReviews');
  return failed(check, errorText(error));
}

/** Groups permissions that differ in their verbs only. */
function groupsOf(permissions: readonly Permission[]): (readonly [Permission, ...Permission[]])[] {
  const groups = new Map<string, [Permission, ...Permission[]]>();
  for (const permission of permissions) {
    const { verb: _, ...rest } = permission;
    const id = JSON.stringify(rest);
    const group = groups.get(id);
    if (group) group.push(permission);
    else groups.set(id, [permission]);
  }
  return [...groups.values()];
}

function missingPermissions(
  check: string,
  group: readonly [Permission, ...Permission[]],
  user: string | undefined,
): CheckResult {
  const [first] = group;
  const { group: apiGroup, resource, subresource, namespace, name } = first;
  const verbs = group.map(({ verb }) => verb);
  const plural = subresource === undefined ? resource : `${resource}/${subresource}`;
  const what = apiGroup ? `${plural} of ${apiGroup}` : plural;
  const which = name === undefined ? what : `${what} named ${name}`;
  const where = namespace === undefined ? 'in all namespaces' : `in namespace ${namespace}`;
  const role = namespace === undefined ? 'ClusterRole' : 'Role or ClusterRole';
  const detail = `cannot ${verbs.join(', ')} ${which} ${where}`;
  const next = [
    `Add this rule to a ${role} of the user: ${missingRule(first, verbs)}`,
    `Verify: ${canICommand({ ...first, user })}`,
  ];
  return subresource === 'finalizers'
    ? warning(check, `${detail}: ${ASKED_BY_ADMISSION}`, ...next)
    : failed(check, detail, ...next);
}

/** Rule of an RBAC role. */
export interface RequiredRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

/** Permissions that one part of the program requires. */
export interface RequiredPermissions {
  /** Name of the part: `count`, `events`. */
  readonly part: string;
  readonly permissions: readonly Permission[];
}

/** Input of `requiredPermissions`. */
export interface PermissionPlan {
  readonly controllers: readonly { readonly name: string; readonly isOnByDefault: boolean }[];
  /** Empty: all namespaces. */
  readonly namespaces: readonly string[];
  /**
   * API group of events.
   * @default the core group
   */
  readonly eventGroup?: string;
  /**
   * Whether an endpoint authorizes its clients by the review APIs.
   * @default false
   */
  readonly hasProtectedEndpoints?: boolean;
  /** Leases for leader election or shards; absent: none. */
  readonly leases?: { readonly namespace: string; readonly names: readonly string[] } | undefined;
}

/**
 * Returns the permissions that the planned run requires. They are those of the roles in hack/deploy, which
 * an installation grants.
 *
 * @param read reads a file of the kustomization
 */
export function requiredPermissions(
  read: ReadManifest,
  plan: PermissionPlan,
): RequiredPermissions[] {
  const { controllers, namespaces, leases, hasProtectedEndpoints = false } = plan;
  const { eventGroup = '' } = plan;
  const everywhere = namespaces.length > 0 ? namespaces : [undefined];
  const own = controllers.map(({ name, isOnByDefault }): RequiredPermissions => {
    const file = isOnByDefault ? `rbac/controllers/${name}.yaml` : `rbac/${name}/role.yaml`;
    return { part: name, permissions: permissionsOf(rulesIn(read(file)), everywhere) };
  });
  const events = permissionsOf(
    rulesIn(read('rbac/events/events.yaml')),
    // Events about a Lease are created in its namespace.
    [...new Set([...everywhere, ...(leases && namespaces.length > 0 ? [leases.namespace] : [])])],
  ).filter(({ group }) => group === eventGroup);
  const reviews = hasProtectedEndpoints ? rulesIn(read('rbac/metrics/auth-role.yaml')) : [];
  const lease = rulesIn(read('rbac/identity/leader-election.yaml')).map((rule): RequiredRule =>
    rule.resourceNames ? named(rule, leases?.names ?? []) : rule,
  );
  return [
    ...own,
    { part: 'events', permissions: events },
    { part: 'endpoints', permissions: permissionsOf(reviews, [undefined]) },
    {
      part: 'leader election',
      permissions: leases ? permissionsOf(lease, [leases.namespace]) : [],
    },
  ].filter(({ permissions }) => permissions.length > 0);
}

/** Returns the rule with other resource names. */
function named(rule: RequiredRule, resourceNames: readonly string[]): RequiredRule {
  return { ...rule, resourceNames };
}

function rulesIn(text: string): RequiredRule[] {
  return parseAllDocuments(text).flatMap((document) => {
    const { rules = [] } = document.toJS() as { readonly rules?: readonly RequiredRule[] };
    return rules;
  });
}

/** Returns the permissions of a program with webhooks. */
export function webhookPermissions(
  { namespace, cluster }: WebhookRules,
  installedIn: string,
): RequiredPermissions {
  const rules = (given: readonly PolicyRule[]) =>
    given.map(({ apiGroups = [], resources = [], ...rule }): RequiredRule => ({
      ...rule,
      apiGroups,
      resources,
    }));
  return {
    part: 'webhooks',
    permissions: [
      ...permissionsOf(rules(namespace), [installedIn]),
      ...permissionsOf(rules(cluster), [undefined]),
    ],
  };
}

function permissionsOf(
  rules: readonly RequiredRule[],
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
