import { goQuote } from '../../util/go-quote.ts';
import type { HttpRequest } from '../../util/http.ts';
import type { LruMap } from '../../util/lru-map.ts';
import { nameProblems } from '../../api/object-names.ts';
import type { Action, Authorizer } from '../../api/policy-rule.ts';
import { accessDenied, badRequest, StatusError } from '../objects/status-error.ts';
import type { User } from '../../api/user.ts';
import { ANONYMOUS, AUTHENTICATED, MASTERS, UNAUTHENTICATED } from '../../api/user.ts';

const EXTRA_PREFIX = 'impersonate-extra-';
const AUTHENTICATION_GROUP = 'authentication.k8s.io';

type ResourceAction = Extract<Action, { readonly kind: 'resource' }>;

/**
 * Returns the user in the impersonation headers of a request, or undefined if there are none.
 * Header fields that are sent several times arrive as one, separated by a comma and a space.
 *
 * @throws {StatusError} 400 if the headers name a uid, a group or an extra field, but no user
 */
export function impersonatedUser({ headers }: Pick<HttpRequest, 'headers'>): User | undefined {
  const name = headers['impersonate-user'] ?? '';
  const uid = headers['impersonate-uid'] ?? '';
  const groups = headers['impersonate-group']?.split(', ') ?? [];
  const extra = new Map<string, readonly string[]>();
  for (const [header, value] of Object.entries(headers)) {
    if (!header.startsWith(EXTRA_PREFIX)) continue;
    extra.set(unescapeKey(header.slice(EXTRA_PREFIX.length)), value.split(', '));
  }
  const user = { name, uid, groups, extra: Object.fromEntries(extra) };
  if (name !== '') return user;
  if (uid === '' && groups.length === 0 && extra.size === 0) return undefined;
  throw badRequest(`requested ${inGo(user)} without impersonating a user name`);
}

/** The modes of KEP-5284 in the order in which they are tried, and the mode with the verb `impersonate`. */
export type ImpersonationMode =
  'associated-node' | 'arbitrary-node' | 'serviceaccount' | 'user-info' | 'legacy';

/** The user for whom the server handles a request, and the verb that permits it, unless that is `impersonate`. */
export interface AuthorizedImpersonation {
  readonly user: User;
  readonly constraint: string | undefined;
}

/**
 * Returns the user for whom the server handles the request: `wanted` with the groups that follow from its name. As in a
 * kube-apiserver, a verb such as `impersonate:user-info` is needed on every single value (the user, the service account
 * or the node, the uid, each group, and each value of an extra field) and `impersonate-on:user-info:list` on the object
 * of the request. The verb `impersonate` on every value permits all requests.
 *
 * The permissions that the request needs are recorded.
 *
 * @param lastModes the mode that last permitted each user, which is tried first
 * @throws {StatusError} 403 for the first value that `requestor` may not impersonate in the first mode
 */
export function authorizeImpersonation(
  access: Pick<Authorizer, 'allows' | 'authorize' | 'decide'>,
  lastModes: LruMap<string, ImpersonationMode>,
  requestor: User,
  wanted: User,
  action: Action,
): AuthorizedImpersonation {
  const last = lastModes.get(requestor.name);
  const modes = modesOf(requestor, wanted).toSorted(
    (one, other) => Number(other === last) - Number(one === last),
  );
  const legacy = legacyActions(requestor, wanted, action);
  // All servers have this verb, so the observed role has it, unless the user has permissions of a mode only.
  const needed = (used: readonly Action[]) => {
    const isLegacy = used.length === 0 || legacy.every((each) => access.allows(requestor, each));
    for (const each of isLegacy ? legacy : used) access.authorize(requestor, each);
  };
  let first: StatusError | undefined;
  for (const mode of modes) {
    const used: Action[] = [];
    const deciding = {
      decide: (user: User, each: Action) => {
        const decision = access.decide(user, each);
        if (decision.allowed) used.push(each);
        return decision;
      },
    };
    try {
      const user = impersonate(deciding, requestor, wanted, action, mode);
      needed(used);
      lastModes.set(requestor.name, mode);
      return { user, constraint: mode === 'legacy' ? undefined : `impersonate:${mode}` };
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      first ??= error;
    }
  }
  needed([]);
  throw first ?? accessDenied(requestor, action, '');
}

/** Returns the permissions with the verb `impersonate` that a request needs. */
function legacyActions(requestor: User, wanted: User, action: Action): readonly Action[] {
  const actions: Action[] = [];
  const all = {
    decide: (_: User, each: Action) => {
      actions.push(each);
      return { allowed: true, reason: '' };
    },
  };
  impersonate(all, requestor, wanted, action, 'legacy');
  return actions;
}

/** Returns the modes that support a user. Those of nodes and service accounts set all other fields themselves. */
function modesOf({ name, extra = {} }: User, wanted: User): readonly ImpersonationMode[] {
  const node = nodeOf(wanted.name);
  const isServiceAccount = serviceAccountOf(wanted.name) !== undefined;
  if (node === undefined && !isServiceAccount) return ['user-info', 'legacy'];
  const { uid = '', groups, extra: wantedExtra = {} } = wanted;
  if (uid !== '' || groups.length > 0 || Object.keys(wantedExtra).length > 0) return ['legacy'];
  if (isServiceAccount) return ['serviceaccount', 'legacy'];
  const [ownNode, ...others] = extra['authentication.kubernetes.io/node-name'] ?? [];
  const isOwn = ownNode === node && others.length === 0 && serviceAccountOf(name) !== undefined;
  return [...(isOwn ? (['associated-node'] as const) : []), 'arbitrary-node', 'legacy'];
}

/** From this number of values, a permission for all values is looked for first. */
const MANY = 4;

/** @throws {StatusError} 403 for the first value that `requestor` may not impersonate */
function impersonate(
  access: Pick<Authorizer, 'decide'>,
  requestor: User,
  wanted: User,
  action: Action,
  mode: ImpersonationMode,
): User {
  const isLegacy = mode === 'legacy';
  const { name, uid = '', groups, extra = {} } = wanted;
  const asked = (part: Partial<ResourceAction>): ResourceAction => ({
    kind: 'resource',
    verb: isLegacy ? 'impersonate' : `impersonate:${mode}`,
    group: isLegacy ? '' : AUTHENTICATION_GROUP,
    resource: '',
    subresource: '',
    namespace: '',
    name: '',
    ...part,
  });
  const require = (each: Action) => {
    const { allowed, reason } = access.decide(requestor, each);
    if (!allowed) throw accessDenied(requestor, each, reason);
  };
  const requireAll = (values: readonly ResourceAction[], all: Partial<ResourceAction>) => {
    const isMany = !isLegacy && values.length >= MANY;
    if (isMany && access.decide(requestor, asked(all)).allowed) return;
    for (const each of values) require(each);
  };
  const deny = (part: Partial<ResourceAction>, why: string) => {
    if (!isLegacy)
      throw accessDenied(requestor, asked(part), `impersonating ${why} is not allowed`);
  };
  if (!isLegacy) require({ ...action, verb: `impersonate-on:${mode}:${action.verb}` });
  const serviceAccount = serviceAccountOf(name);
  const node = isLegacy ? undefined : nodeOf(name);
  if (serviceAccount) require(asked({ resource: 'serviceaccounts', ...serviceAccount }));
  else if (node === undefined) require(asked({ resource: 'users', name }));
  else require(asked({ resource: 'nodes', name: mode === 'associated-node' ? '*' : node }));
  if (uid !== '') require(asked({ group: AUTHENTICATION_GROUP, resource: 'uids', name: uid }));
  const aGroup = { resource: 'groups' };
  if (groups.includes('')) deny(aGroup, 'the empty string group');
  if (groups.includes(MASTERS)) deny({ ...aGroup, name: MASTERS }, `the ${MASTERS} group`);
  requireAll(
    groups.map((group) => asked({ ...aGroup, name: group })),
    { ...aGroup, name: '*' },
  );
  const field = { group: AUTHENTICATION_GROUP, resource: 'userextras' };
  for (const [key, values] of Object.entries(extra)) {
    if (!/^[^/]+\/./.test(key)) deny(field, 'an invalid key in extra');
    if (values.includes('')) deny(field, 'the empty string value in extra');
  }
  requireAll(
    Object.entries(extra).flatMap(([subresource, values]) =>
      values.map((value) => asked({ ...field, subresource, name: value })),
    ),
    { ...field, subresource: '*', name: '*' },
  );
  const fixed = node === undefined ? groups : ['system:nodes'];
  return { ...wanted, groups: effectiveGroups(name, fixed, serviceAccount?.namespace) };
}

/** Returns the name in `system:node:NAME`; undefined for any other user. */
function nodeOf(user: string): string | undefined {
  const [, name] = /^system:node:(.+)$/.exec(user) ?? [];
  return name !== undefined && nameProblems(name, 'dns1123Subdomain').length === 0
    ? name
    : undefined;
}

/** A service account without groups gets those of its namespace; everybody is authenticated or not. */
function effectiveGroups(
  name: string,
  groups: readonly string[],
  namespace: string | undefined,
): readonly string[] {
  const isFixed = namespace !== undefined && groups.length === 0;
  const all = isFixed ? ['system:serviceaccounts', `system:serviceaccounts:${namespace}`] : groups;
  if (all.includes(UNAUTHENTICATED)) return all;
  const implied = name === ANONYMOUS.name ? UNAUTHENTICATED : AUTHENTICATED;
  return all.includes(implied) ? all : [...all, implied];
}

/** Namespace and name in `system:serviceaccount:NAMESPACE:NAME`; undefined for any other user. */
function serviceAccountOf(
  user: string,
): { readonly namespace: string; readonly name: string } | undefined {
  const [, namespace = '', name = ''] = /^system:serviceaccount:([^:]*):([^:]*)$/.exec(user) ?? [];
  const isValid =
    nameProblems(namespace, 'dns1123Label').length === 0 &&
    nameProblems(name, 'dns1123Subdomain').length === 0;
  return isValid ? { namespace, name } : undefined;
}

/** Keys of extra fields are percent-encoded; one that is not well-formed stays as it is. */
function unescapeKey(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch (error) {
    if (error instanceof URIError) return key;
    throw error;
  }
}

/** The user as Go's `%#v` formats it, which is what the message of a kube-apiserver shows. */
function inGo({ name, uid = '', groups, extra = {} }: User): string {
  const list = (values: readonly string[]) => `{${values.map(goQuote).join(', ')}}`;
  const fields = Object.entries(extra)
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([key, values]) => `${goQuote(key)}:[]string${list(values)}`);
  return [
    `&user.DefaultInfo{Name:${goQuote(name)}`,
    `UID:${goQuote(uid)}`,
    `Groups:[]string${groups.length > 0 ? list(groups) : '(nil)'}`,
    `Extra:map[string][]string${fields.length > 0 ? `{${fields.join(', ')}}` : '(nil)'}}`,
  ].join(', ');
}
