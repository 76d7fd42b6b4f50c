import type { HttpRequest } from '../util/http.ts';

/** Who sends a request, as tokens tell it. */
export interface User {
  readonly name: string;
  readonly groups: readonly string[];
}

/** Everybody who has a token is in it. */
export const AUTHENTICATED: string = 'system:authenticated';
/** Everybody else. */
export const UNAUTHENTICATED: string = 'system:unauthenticated';

/** Members may do everything, whatever else is said. */
export const MASTERS: string = 'system:masters';

/** Whose token the server made. */
export const ADMIN: User = { name: 'admin', groups: [MASTERS, AUTHENTICATED] };

/** Whoever sends no token. */
export const ANONYMOUS: User = { name: 'system:anonymous', groups: [UNAUTHENTICATED] };

/** Whom somebody else is to be taken for: as in any cluster, whoever may impersonate says so. */
export function impersonated({ headers }: HttpRequest): User | undefined {
  const name = headers['impersonate-user'];
  if (!name) return undefined;
  const given = (headers['impersonate-group'] ?? '').split(',').map((group) => group.trim());
  const groups = given.filter(Boolean);
  if (name === ANONYMOUS.name) return { name, groups: [...groups, UNAUTHENTICATED] };
  const [, namespace] = /^system:serviceaccount:([^:]+):[^:]+$/.exec(name) ?? [];
  if (namespace !== undefined && groups.length === 0) {
    groups.push('system:serviceaccounts', `system:serviceaccounts:${namespace}`);
  }
  return { name, groups: [...groups, AUTHENTICATED] };
}
