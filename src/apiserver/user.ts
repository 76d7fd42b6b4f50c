/** The authenticated user of a request. */
export interface User {
  readonly name: string;
  readonly groups: readonly string[];
  /** Unique id; absent or empty if unknown. */
  readonly uid?: string;
  /** Further attributes: the values of each key. */
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** Knows the users of bearer tokens. */
export interface Authenticator {
  /** Returns the user of a bearer token, or undefined if the token is not valid. */
  userOf(token: string): User | undefined;
}

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
