import type { HttpRequest } from '../../util/http.ts';
import { toBase64 } from '../../util/bytes.ts';
import { sha256 } from '../../util/sha256.ts';
import type {
  Action,
  Authorizer,
  Decision,
  PolicyRule,
  ResolvedRules,
  RoleRef,
} from '../../api/policy-rule.ts';
import { ruleCovers } from '../../api/policy-rule.ts';
import { ObservedRbac } from './observed-rbac.ts';
import type { RequestInfo } from '../request/request-info.ts';
import type { Rbac } from './rbac.ts';
import { selectedName } from '../request/list-options.ts';
import type { ServiceAccountTokens } from './service-account-tokens.ts';
import type { Authentication, Authenticator, User } from '../../api/user.ts';
import { ADMIN, API_AUDIENCE, AUTHENTICATED, MASTERS } from '../../api/user.ts';

/** A user of the server in addition to the administrator. */
export interface ApiUser {
  /** Bearer token of the user. */
  readonly token: string;
  /** User name: `jane`, `system:serviceaccount:default:prometheus`. */
  readonly name: string;
  /**
   * Groups in addition to `system:authenticated`.
   * @default none
   */
  readonly groups?: readonly string[];
  /**
   * Permissions in all namespaces, in addition to those of every authenticated user (discovery and
   * self-access reviews) and to those of stored roles that bindings grant to the user.
   * @default none
   */
  readonly rules?: readonly PolicyRule[];
}

const INVALID_TOKEN = 'invalid bearer token';
const ALLOWED: Decision = { allowed: true, reason: '' };

/** Authenticates bearer tokens and authorizes actions. Stores tokens as hashes. */
export class Access implements Authenticator, Authorizer {
  /** The permissions that requests needed. */
  readonly observed: ObservedRbac = new ObservedRbac(this);
  readonly #rbac: Rbac;
  readonly #users: ReadonlyMap<string, User>;
  readonly #rules: ReadonlyMap<string, readonly PolicyRule[]>;

  readonly #tokens: Pick<ServiceAccountTokens, 'authenticate'>;

  constructor(
    adminToken: string,
    users: readonly ApiUser[],
    rbac: Rbac,
    tokens: Pick<ServiceAccountTokens, 'authenticate'>,
  ) {
    this.#rbac = rbac;
    this.#tokens = tokens;
    this.#users = new Map([
      [hashOf(adminToken), ADMIN],
      ...users.map(({ token, name, groups = [] }): [string, User] => [
        hashOf(token),
        { name, groups: [...groups, AUTHENTICATED] },
      ]),
    ]);
    this.#rules = new Map(users.map(({ name, rules = [] }) => [name, rules]));
  }

  authenticate(token: string, audiences: readonly string[]): Authentication | string {
    const user = this.#users.get(hashOf(token));
    if (user && audiences.includes(API_AUDIENCE)) return { user, audiences: [API_AUDIENCE] };
    const result = this.#tokens.authenticate(token, audiences);
    if (typeof result === 'object') return result;
    return result === undefined ? INVALID_TOKEN : `[${INVALID_TOKEN}, ${result}]`;
  }

  decide(user: User, action: Action): Decision {
    if (user.groups.includes(MASTERS)) return ALLOWED;
    if (this.#rulesOf(user).some((rule) => ruleCovers(rule, action))) return ALLOWED;
    return this.#rbac.decide(user, action);
  }

  authorize(user: User, action: Action): Decision {
    this.observed.add(user, action);
    return this.decide(user, action);
  }

  authorizeGrant(user: User, action: Action, granted: readonly PolicyRule[]): Decision {
    this.observed.add(user, action, granted);
    return this.decide(user, action);
  }

  allows(user: User, action: Action): boolean {
    return this.decide(user, action).allowed;
  }

  rulesOf(user: User, namespace: string): ResolvedRules {
    const { rules, problems } = this.#rbac.rulesOf(user, namespace);
    return { rules: [...this.#rulesOf(user), ...rules], problems };
  }

  rulesOfRole(role: RoleRef, namespace: string): readonly PolicyRule[] | string {
    return this.#rbac.rulesOfRole(role, namespace);
  }

  #rulesOf({ name }: User): readonly PolicyRule[] {
    return this.#rules.get(name) ?? [];
  }
}

/** Returns the attributes of a request that authorization depends on. */
export function actionOf({ method, path }: HttpRequest, info: RequestInfo | undefined): Action {
  if (!info) return { kind: 'path', verb: method.toLowerCase(), path: decodedPath(path) };
  const { verb, group, resource, subresource = '', legacyWatch } = info;
  const named = (legacyWatch ?? info).name ?? '';
  // As upstream, the path of a Namespace is in that namespace, and the name in a selector is not part of the path.
  const namespace = info.namespace ?? (resource === 'namespaces' ? named : '');
  const isSelected = named === '' && !legacyWatch && (verb === 'list' || verb === 'watch');
  const name = isSelected ? selectedName(info.query) : named;
  return { kind: 'resource', verb, group, resource, subresource, namespace, name };
}

/** Returns the path without its query. One with a malformed escape, which is rejected, stays as it is. */
function decodedPath(path: string): string {
  const [pathname = ''] = path.split('?', 1);
  try {
    return decodeURIComponent(pathname);
  } catch (error) {
    if (error instanceof URIError) return pathname;
    throw error;
  }
}

/** Hashes a token, because the lookup of a hash leaks no timing of a partial match. */
function hashOf(token: string): string {
  return toBase64(sha256(token));
}
