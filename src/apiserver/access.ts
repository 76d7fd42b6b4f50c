import { createHash } from 'node:crypto';
import type { HttpRequest } from '../util/http.ts';
import type { Action, PolicyRule } from './policy-rule.ts';
import { covers } from './policy-rule.ts';
import type { RequestInfo } from './request-info.ts';
import type { User } from './user.ts';
import { ADMIN, AUTHENTICATED, MASTERS, UNAUTHENTICATED } from './user.ts';

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
   * Permissions in all namespaces, in addition to those of every authenticated user: discovery and
   * self-access reviews.
   * @default none
   */
  readonly rules?: readonly PolicyRule[];
}

const EVERYTHING: readonly PolicyRule[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
  { verbs: ['*'], nonResourceURLs: ['*'] },
];

/** Permissions of all authenticated users, as in every cluster: discovery and self-access reviews. */
const BASICS: readonly PolicyRule[] = [
  {
    verbs: ['create'],
    apiGroups: ['authorization.k8s.io'],
    resources: ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'],
  },
  {
    verbs: ['create'],
    apiGroups: ['authentication.k8s.io'],
    resources: ['selfsubjectreviews'],
  },
  {
    verbs: ['get'],
    nonResourceURLs: ['/api', '/api/*', '/apis', '/apis/*', '/openapi', '/openapi/*'],
  },
];

/** Permissions of all users, also unauthenticated ones. */
const PUBLIC: readonly PolicyRule[] = [
  {
    verbs: ['get'],
    nonResourceURLs: ['/healthz', '/livez', '/readyz', '/version', '/version/'],
  },
];

/** Authenticates bearer tokens and authorizes actions. Stores tokens as hashes. */
export class Access {
  readonly #users: ReadonlyMap<string, User>;
  readonly #rules: ReadonlyMap<string, readonly PolicyRule[]>;

  constructor(adminToken: string, users: readonly ApiUser[]) {
    this.#users = new Map([
      [hashOf(adminToken), ADMIN],
      ...users.map(({ token, name, groups = [] }): [string, User] => [
        hashOf(token),
        { name, groups: [...groups, AUTHENTICATED] },
      ]),
    ]);
    this.#rules = new Map(users.map(({ name, rules = [] }) => [name, rules]));
  }

  userOf(token: string): User | undefined {
    return this.#users.get(hashOf(token));
  }

  allows(user: User, action: Action): boolean {
    return this.rulesOf(user).some((rule) => covers(rule, action));
  }

  rulesOf({ name, groups }: User): readonly PolicyRule[] {
    return [
      ...(this.#rules.get(name) ?? []),
      ...(groups.includes(MASTERS) ? EVERYTHING : []),
      ...(groups.includes(AUTHENTICATED) ? BASICS : []),
      ...(groups.includes(AUTHENTICATED) || groups.includes(UNAUTHENTICATED) ? PUBLIC : []),
    ];
  }
}

/** Returns the attributes of a request that authorization depends on. */
export function actionOf({ method, path }: HttpRequest, info: RequestInfo | undefined): Action {
  if (!info) {
    return { kind: 'path', verb: method.toLowerCase(), path: path.split('?', 1)[0] ?? '' };
  }
  const { verb, group, resource, subresource = '', name = '' } = info;
  const isNamespace = group === '' && resource === 'namespaces';
  const namespace = info.namespace ?? (isNamespace ? name : '');
  return { kind: 'resource', verb, group, resource, subresource, namespace, name };
}

/** Hashes a token, because the lookup of a hash leaks no timing of a partial match. */
function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('base64');
}
