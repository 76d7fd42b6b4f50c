import { goQuote } from '../util/go-quote.ts';
import type { HttpRequest } from '../util/http.ts';
import { nameProblems } from './object-names.ts';
import type { Action, Authorizer } from './policy-rule.ts';
import { accessDenied, badRequest } from './status-error.ts';
import type { User } from './user.ts';
import { ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED } from './user.ts';

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

/**
 * Returns the user for whom the server handles the request: `wanted` with the groups that follow
 * from its name. As in a kube-apiserver, the verb `impersonate` is needed on every single value: the
 * user or the service account, the uid, each group, and each value of an extra field. The verbs of
 * constrained impersonation (KEP-5284) are not supported.
 *
 * @throws {StatusError} 403 for the first value that `requestor` may not impersonate
 */
export function authorizeImpersonation(
  access: Pick<Authorizer, 'decide'>,
  requestor: User,
  wanted: User,
): User {
  const { name, uid = '', groups, extra = {} } = wanted;
  const serviceAccount = serviceAccountOf(name);
  const actions: readonly Partial<ResourceAction>[] = [
    serviceAccount
      ? { resource: 'serviceaccounts', ...serviceAccount }
      : { resource: 'users', name },
    ...(uid === '' ? [] : [{ group: AUTHENTICATION_GROUP, resource: 'uids', name: uid }]),
    ...groups.map((group) => ({ resource: 'groups', name: group })),
    ...Object.entries(extra).flatMap(([subresource, values]) =>
      values.map((value) => ({
        group: AUTHENTICATION_GROUP,
        resource: 'userextras',
        subresource,
        name: value,
      })),
    ),
  ];
  for (const action of actions) {
    const asked = { ...IMPERSONATE, ...action };
    const { allowed, reason } = access.decide(requestor, asked);
    if (!allowed) throw accessDenied(requestor, asked, reason);
  }
  return { ...wanted, groups: effectiveGroups(name, groups, serviceAccount?.namespace) };
}

const IMPERSONATE: ResourceAction = {
  kind: 'resource',
  verb: 'impersonate',
  group: '',
  resource: '',
  subresource: '',
  namespace: '',
  name: '',
};

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
