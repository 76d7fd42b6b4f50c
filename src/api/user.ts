/** The authenticated user of a request. */
export interface User {
  readonly name: string;
  readonly groups: readonly string[];
  /** Unique id; absent or empty if unknown. */
  readonly uid?: string;
  /** Further attributes: the values of each key. */
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** Returns a user as a `UserInfo` of authentication.k8s.io/v1. Empty fields are omitted, as in Go. */
export function userInfo({ name, uid, groups, extra = {} }: User): Record<string, unknown> {
  return {
    username: name,
    ...(uid && { uid }),
    ...(groups.length > 0 && { groups }),
    ...(Object.keys(extra).length > 0 && { extra }),
  };
}

/** The user of a valid token. */
export interface Authentication {
  readonly user: User;
  /** Audiences of the token that were asked for. */
  readonly audiences: readonly string[];
}

/** Knows the users of bearer tokens. */
export interface Authenticator {
  /** Returns the user of a bearer token for some audiences, or the reason why the token is not valid. */
  authenticate(token: string, audiences: readonly string[]): Authentication | string;
}

/** Audience of requests to the server. */
export const API_AUDIENCE: string = 'https://kubernetes.default.svc';

/** Group of all authenticated users. */
export const AUTHENTICATED: string = 'system:authenticated';
/** Group of unauthenticated users. */
export const UNAUTHENTICATED: string = 'system:unauthenticated';

/** Group with all permissions. */
export const MASTERS: string = 'system:masters';

/** The administrator, who has the token of the server. */
export const ADMIN: User = { name: 'admin', groups: [MASTERS, AUTHENTICATED] };

/** The user of requests without a token. */
export const ANONYMOUS: User = { name: 'system:anonymous', groups: [UNAUTHENTICATED] };
