import { createHash } from 'node:crypto';
import type { HttpRequest } from '../util/http.ts';
import type { RequestInfo } from './request-info.ts';

/** Who sends a request, as tokens tell it. */
export interface User {
  readonly name: string;
  readonly groups: readonly string[];
}

/** What a user may do, as a ClusterRole's rule says it: `*` stands for everything. */
export interface PolicyRule {
  readonly verbs: readonly string[];
  readonly apiGroups?: readonly string[];
  /** `pods`, `pods/log`, or `*`+`/scale` for that of every resource. */
  readonly resources?: readonly string[];
  /** Empty or absent: any name, and none. */
  readonly resourceNames?: readonly string[];
  /** Paths that are no resource's: `/metrics`, or all that begin so: `/debug/*`. */
  readonly nonResourceURLs?: readonly string[];
}

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

/** What is to be allowed. */
export type Action =
  | {
      readonly kind: 'resource';
      readonly verb: string;
      /** Empty for the core group. */
      readonly group: string;
      /** Plural name. */
      readonly resource: string;
      readonly subresource: string;
      /** Empty: none, or all. */
      readonly namespace: string;
      readonly name: string;
    }
  | { readonly kind: 'path'; readonly verb: string; readonly path: string };

const AUTHENTICATED = 'system:authenticated';
const UNAUTHENTICATED = 'system:unauthenticated';

/** Members may do everything, whatever else is said. */
const MASTERS = 'system:masters';

/** Whose token the server made. */
export const ADMIN: User = { name: 'admin', groups: [MASTERS, AUTHENTICATED] };

/** Whoever sends no token. */
export const ANONYMOUS: User = { name: 'system:anonymous', groups: [UNAUTHENTICATED] };

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

/** Whether a rule is about an action, as RBAC decides it. */
export function covers(rule: PolicyRule, action: Action): boolean {
  if (!includes(rule.verbs, action.verb)) return false;
  if (action.kind === 'path') return coversPath(rule.nonResourceURLs ?? [], action.path);
  const { resource, subresource, name } = action;
  const { apiGroups = [], resources = [], resourceNames = [] } = rule;
  const full = subresource ? `${resource}/${subresource}` : resource;
  return (
    includes(apiGroups, action.group) &&
    (includes(resources, full) || (subresource !== '' && resources.includes(`*/${subresource}`))) &&
    (resourceNames.length === 0 || resourceNames.includes(name))
  );
}

function coversPath(patterns: readonly string[], path: string): boolean {
  return patterns.some(
    (pattern) =>
      pattern === path || (pattern.endsWith('*') && path.startsWith(pattern.slice(0, -1))),
  );
}

function includes(granted: readonly string[], asked: string): boolean {
  return granted.includes('*') || granted.includes(asked);
}

/** Looking a hash up says nothing of how much of a token was right. */
function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('base64');
}
