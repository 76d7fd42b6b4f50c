import { equalJson } from '../../api/equal.ts';
import { nameProblems } from '../../api/object-names.ts';
import { goQuote } from '../../util/go-quote.ts';
import type { Authorizer, PolicyRule, RoleRef } from '../../api/policy-rule.ts';
import { coversPath } from '../../api/policy-rule.ts';
import { aggregate } from './rbac.ts';
import type { ResourceNames, StoredObject } from '../objects/resource-definition.ts';
import { StatusError, badRequest, forbiddenError, notFoundError } from '../objects/status-error.ts';
import type { User } from '../../api/user.ts';
import { MASTERS } from '../../api/user.ts';

const GROUP = 'rbac.authorization.k8s.io';

const FULL_AUTHORITY: readonly PolicyRule[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
  { verbs: ['*'], nonResourceURLs: ['*'] },
];

/** A user that writes a role or a binding. */
export interface Granting {
  readonly user: User;
  readonly access: Authorizer;
  /** Verb of the request. */
  readonly verb: string;
}

/** A Role or ClusterRole to write. */
interface WrittenRole extends StoredObject {
  readonly rules?: readonly PolicyRule[] | null;
  readonly aggregationRule?: { readonly clusterRoleSelectors?: readonly object[] };
}

/** A RoleBinding or ClusterRoleBinding to write. */
interface WrittenBinding extends StoredObject {
  readonly roleRef?: Partial<RoleRef> & { readonly apiGroup?: string };
}

/**
 * Requires that a user who writes a role has all its permissions or may `escalate`.
 *
 * @throws {StatusError} 403 with the missing permissions
 */
export function requireRoleRights(
  plural: 'roles' | 'clusterroles',
  { user, access, verb }: Granting,
  object: StoredObject,
  previous?: StoredObject,
): void {
  if (user.groups.includes(MASTERS)) return;
  const { rules } = object as WrittenRole;
  // An empty list is stored as null.
  const role: WrittenRole = { ...object, rules: rules && rules.length > 0 ? rules : null };
  const { namespace = '', name } = object.metadata;
  const escalate = {
    kind: 'resource',
    verb: 'escalate',
    group: GROUP,
    resource: plural,
    subresource: '',
    namespace,
    // The path of a creation has no name.
    name: verb === 'create' ? '' : name,
  } as const;
  if (changesReferencesOnly(role, previous)) return;
  // An aggregation rule grants everything.
  const isWhole = isAggregated(object) || isAggregated(previous);
  const granted = [...(role.rules ?? []), ...(isWhole ? FULL_AUTHORITY : [])];
  if (access.authorizeGrant(user, escalate, granted).allowed) return;
  const resource = { group: GROUP, plural };
  requireRules({ user, access }, resource, object, role.rules ?? []);
  if (!isWhole) return;
  if (missingRules(access.rulesOf(user, namespace).rules, FULL_AUTHORITY).length === 0) return;
  throw forbiddenError(
    resource,
    name,
    'must have cluster-admin privileges to use the aggregationRule',
  );
}

/**
 * Requires that a user who binds a role has all its permissions or may `bind` it.
 *
 * @throws {StatusError} 403 with the missing permissions, 404 if the role does not exist
 */
export function requireBindingRights(
  plural: 'rolebindings' | 'clusterrolebindings',
  { user, access }: Granting,
  object: StoredObject,
  previous?: StoredObject,
): void {
  if (user.groups.includes(MASTERS) || changesReferencesOnly(object, previous)) return;
  const { roleRef: { apiGroup = '', kind = '', name = '' } = {} }: WrittenBinding = object;
  const { namespace = '' } = object.metadata;
  const bind = {
    kind: 'resource',
    verb: 'bind',
    group: apiGroup,
    resource: `${kind.toLowerCase()}s`,
    subresource: '',
    namespace,
    name,
  } as const;
  const rules = access.rulesOfRole({ kind, name }, namespace);
  const granted = typeof rules === 'string' ? FULL_AUTHORITY : rules;
  if (access.authorizeGrant(user, bind, granted).allowed) return;
  const resource = { group: GROUP, plural };
  // As upstream, the error contains the resource of the binding.
  if (typeof rules === 'string') {
    if (kind === 'Role' || kind === 'ClusterRole') {
      requireReadableName(name);
      throw notFoundError(resource, name);
    }
    throw StatusError.failure({
      code: 500,
      message: `unsupported role reference kind: ${goQuote(kind)}`,
    });
  }
  requireRules({ user, access }, resource, object, rules);
}

/** @throws {StatusError} 400 if no object can have the name */
function requireReadableName(name: string): void {
  if (name === '') throw badRequest('Name parameter required.');
  const problems = nameProblems(name, 'pathSegment');
  if (problems.length === 0) return;
  throw badRequest(`Name parameter invalid: ${goQuote(name)}: ${problems.join(';')}`);
}

/** Returns the elementary rules of `wanted` that no rule of `held` covers. */
export function missingRules(
  held: readonly PolicyRule[],
  wanted: readonly PolicyRule[],
): PolicyRule[] {
  return wanted
    .flatMap(elementaryRules)
    .filter((rule) => !held.some((other) => coversRule(other, rule)));
}

function requireRules(
  { user, access }: Pick<Granting, 'access' | 'user'>,
  resource: Pick<ResourceNames, 'plural'> & { readonly group: string },
  { metadata: { namespace = '', name, generateName } }: StoredObject,
  wanted: readonly PolicyRule[],
): void {
  const { rules, problems } = access.rulesOf(user, namespace);
  const missing = missingRules(rules, wanted);
  if (missing.length === 0) return;
  const groups = quotedList(user.groups);
  const lines = [...new Set(compact(missing).map(inGo))].sort().join('\n');
  const unresolved = problems.length > 0 ? `; resolution errors: [${aggregate(problems)}]` : '';
  throw forbiddenError(
    resource,
    // Upstream generates the name later.
    generateName !== undefined && name.startsWith(generateName) ? '' : name,
    `user ${goQuote(user.name)} (groups=${groups}) is attempting to grant RBAC permissions not currently held:\n${lines}${unresolved}`,
  );
}

/** Splits a rule into rules with one verb, one resource and at most one name each. */
function elementaryRules(rule: PolicyRule): PolicyRule[] {
  const { verbs, apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] } = rule;
  const named = resourceNames.map((name) => ({ resourceNames: [name] }));
  return [
    ...apiGroups.flatMap((group) =>
      resources.flatMap((resource) =>
        verbs.flatMap((verb) =>
          (named.length > 0 ? named : [{}]).map((names) =>
            Object.assign({ apiGroups: [group], resources: [resource], verbs: [verb] }, names),
          ),
        ),
      ),
    ),
    ...nonResourceURLs.flatMap((path) =>
      verbs.map((verb) => ({ nonResourceURLs: [path], verbs: [verb] })),
    ),
  ];
}

function coversRule(held: PolicyRule, wanted: PolicyRule): boolean {
  const { verbs, apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] } = held;
  const names = wanted.resourceNames ?? [];
  return (
    includesAll(verbs, wanted.verbs) &&
    includesAll(apiGroups, wanted.apiGroups ?? []) &&
    (wanted.resources ?? []).every(
      (resource) =>
        includesAll(resources, [resource]) ||
        (resource.includes('/') && resources.includes(resource.replace(/^[^/]*/, '*'))),
    ) &&
    (resourceNames.length === 0 ||
      (names.length > 0 && names.every((name) => resourceNames.includes(name)))) &&
    (wanted.nonResourceURLs ?? []).every((path) => coversPath(nonResourceURLs, path))
  );
}

function includesAll(held: readonly string[], wanted: readonly string[]): boolean {
  return held.includes('*') || wanted.every((each) => held.includes(each));
}

/** Joins the verbs of elementary rules for the same resource and name. */
function compact(rules: readonly PolicyRule[]): PolicyRule[] {
  const byResource = Map.groupBy(rules, ({ verbs: _verbs, ...resource }) =>
    JSON.stringify(resource),
  );
  return [...byResource.values()].flatMap((alike) => {
    const [first] = alike;
    if (!first || first.nonResourceURLs) return alike;
    return [{ ...first, verbs: alike.flatMap(({ verbs }) => verbs) }];
  });
}

/** Formats a rule like the messages of kube-apiserver: `{APIGroups:[""], Resources:["pods"], Verbs:["get"]}`. */
function inGo({ apiGroups, resources, nonResourceURLs, resourceNames, verbs }: PolicyRule): string {
  const lists = Object.entries({
    APIGroups: apiGroups,
    Resources: resources,
    NonResourceURLs: nonResourceURLs,
    ResourceNames: resourceNames,
    Verbs: verbs,
  });
  const parts = lists.flatMap(([name, list]) => (list ? [`${name}:${quotedList(list)}`] : []));
  return `{${parts.join(', ')}}`;
}

function quotedList(texts: readonly string[]): string {
  return `[${texts.map(goQuote).join(' ')}]`;
}

function isAggregated(role: WrittenRole | undefined): boolean {
  return (role?.aggregationRule?.clusterRoleSelectors?.length ?? 0) > 0;
}

/**
 * Whether an update changes owner references and finalizers only, as the garbage collector does. As upstream, an object
 * without the metadata that the server sets changes that.
 */
function changesReferencesOnly(object: StoredObject, previous: StoredObject | undefined): boolean {
  return (
    previous !== undefined && equalJson(withoutReferences(object), withoutReferences(previous))
  );
}

function withoutReferences({ metadata, ...rest }: StoredObject): object {
  const {
    ownerReferences: _owners,
    finalizers: _finalizers,
    managedFields: _fields,
    ...own
  } = metadata;
  return { ...rest, metadata: own };
}
