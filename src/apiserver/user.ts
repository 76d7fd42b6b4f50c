/** Who sends a request, as tokens tell it. */
export interface User {
  readonly name: string;
  readonly groups: readonly string[];
  /** Absent or empty: unknown. */
  readonly uid?: string;
  /** Further attributes: the values of each key. */
  readonly extra?: Readonly<Record<string, readonly string[]>>;
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
