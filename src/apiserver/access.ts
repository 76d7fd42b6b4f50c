import { createHash } from 'node:crypto';
import type { HttpRequest } from '../util/http.ts';
import type { Action, PolicyRule } from './policy-rule.ts';
import { covers } from './policy-rule.ts';
import type { RequestInfo } from './request-info.ts';
import type { User } from './user.ts';
import { ADMIN, AUTHENTICATED, MASTERS, UNAUTHENTICATED } from './user.ts';

/** Somebody who may enter besides the administrator. */
export interface ApiUser {
  /** The bearer token to be known by. */
  readonly token: string;
  /** `jane`, `system:serviceaccount:default:prometheus` */
  readonly name: string;
  /**
   * Besides `system:authenticated`.
   * @default none
   */
  readonly groups?: readonly string[];
  /**
   * What is allowed, in all namespaces, beyond what everybody may: to look around, and to ask for
   * oneself.
   * @default nothing
   */
  readonly rules?: readonly PolicyRule[];
}

const EVERYTHING: readonly PolicyRule[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
  { verbs: ['*'], nonResourceURLs: ['*'] },
];

/** What everybody may who has a token: as in every cluster, to look around and to ask for oneself. */
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

/** What everybody may. */
const PUBLIC: readonly PolicyRule[] = [
  {
    verbs: ['get'],
    nonResourceURLs: ['/healthz', '/livez', '/readyz', '/version', '/version/'],
  },
];

/** Whose token is whose, and who may do what. Tokens are kept as hashes. */
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

/** What a request does: the attributes by which a server decides whether it may. */
export function actionOf({ method, path }: HttpRequest, info: RequestInfo | undefined): Action {
  if (!info) {
    return { kind: 'path', verb: method.toLowerCase(), path: path.split('?', 1)[0] ?? '' };
  }
  const { verb, group, resource, subresource = '', name = '' } = info;
  const isNamespace = group === '' && resource === 'namespaces';
  const namespace = info.namespace ?? (isNamespace ? name : '');
  return { kind: 'resource', verb, group, resource, subresource, namespace, name };
}

/** Looking a hash up says nothing of how much of a token was right. */
function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('base64');
}
