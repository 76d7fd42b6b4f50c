import type { Action, Authorizer, PolicyRule } from '../../api/policy-rule.ts';
import type { User } from '../../api/user.ts';
import { AUTHENTICATED } from '../../api/user.ts';

/** Maximum number of users, and of different actions of each. */
const MAX_USERS = 1000;
const MAX_ACTIONS = 1000;

/** A ClusterRole that permits what a user has done. */
export interface ObservedRole {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly rules: readonly PolicyRule[];
}

/** Records which permissions the requests of each user need, whether they are allowed or not. */
export class ObservedRbac {
  readonly #access: Pick<Authorizer, 'allows'>;
  readonly #users = new Map<string, Map<string, Action>>();

  constructor(access: Pick<Authorizer, 'allows'>) {
    this.#access = access;
  }

  add({ name }: User, action: Action): void {
    let actions = this.#users.get(name);
    if (!actions) {
      if (this.#users.size === MAX_USERS) return;
      actions = new Map();
      this.#users.set(name, actions);
    }
    const key = `${action.verb} ${placeOf(action)}`;
    if (actions.size < MAX_ACTIONS && !actions.has(key)) actions.set(key, action);
  }

  /**
   * Returns the smallest ClusterRole, without names of objects, that permits all requests of a user so far. It
   * leaves out the permissions of all authenticated users.
   */
  roleOf(user: string): ObservedRole {
    const everybody: User = { name: '', groups: [AUTHENTICATED] };
    const actions = [...(this.#users.get(user)?.values() ?? [])].filter(
      (action) => !this.#access.allows(everybody, action),
    );
    const byPlace = Map.groupBy(actions, placeOf);
    const rules = [...byPlace.values()].flatMap((alike) => {
      const [first] = alike;
      const verbs = alike.map(({ verb }) => verb).sort();
      return first ? [ruleOf(first, verbs)] : [];
    });
    const byVerbs = Map.groupBy(rules, ({ apiGroups, verbs }) =>
      JSON.stringify([apiGroups, verbs]),
    );
    const merged = [...byVerbs.values()].flatMap(([first, ...others]) =>
      first ? [others.reduce(withPlaces, first)] : [],
    );
    return {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: user },
      rules: merged.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)),
    };
  }
}

/** Formats a role as YAML. */
export function yamlOfRole({ apiVersion, kind, metadata, rules }: ObservedRole): string {
  const list = (values: readonly string[]) => `[${values.map(quoted).join(', ')}]`;
  const lines = rules.flatMap((rule) =>
    Object.entries(rule).map(
      ([field, values], index) => `${index === 0 ? '  - ' : '    '}${field}: ${list(values)}`,
    ),
  );
  return [
    `apiVersion: ${apiVersion}`,
    `kind: ${kind}`,
    'metadata:',
    `  name: ${quoted(metadata.name)}`,
    rules.length > 0 ? 'rules:' : 'rules: []',
    ...lines,
    '',
  ].join('\n');
}

function quoted(text: string): string {
  return JSON.stringify(text);
}

/** Returns what the rules of an action name besides the verb. */
function placeOf(action: Action): string {
  if (action.kind === 'path') return action.path;
  return `${action.group} ${fullResource(action)}`;
}

function fullResource({ resource, subresource }: Action & { readonly kind: 'resource' }): string {
  return subresource ? `${resource}/${subresource}` : resource;
}

function ruleOf(action: Action, verbs: readonly string[]): PolicyRule {
  if (action.kind === 'path') return { nonResourceURLs: [action.path], verbs };
  return { apiGroups: [action.group], resources: [fullResource(action)], verbs };
}

/** Returns a rule that also permits its verbs for the resources and paths of another one. */
function withPlaces(rule: PolicyRule, other: PolicyRule): PolicyRule {
  const { resources = [], nonResourceURLs = [] } = rule;
  return {
    ...rule,
    ...(rule.resources && { resources: [...resources, ...(other.resources ?? [])].sort() }),
    ...(rule.nonResourceURLs && {
      nonResourceURLs: [...nonResourceURLs, ...(other.nonResourceURLs ?? [])].sort(),
    }),
  };
}
