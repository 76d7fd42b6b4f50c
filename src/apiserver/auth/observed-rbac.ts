import type { Action, Authorizer, PolicyRule } from '../../api/policy-rule.ts';
import type { User } from '../../api/user.ts';
import { AUTHENTICATED } from '../../api/user.ts';
import { missingRules } from './privilege-escalation.ts';

/** Maximum number of users, and of different actions of each. */
const MAX_USERS = 1000;
const MAX_ACTIONS = 1000;

/** Verbs of requests. Their rules are without names; those of other verbs, such as `bind`, name the object. */
const REQUEST_VERBS: ReadonlySet<string> = new Set(
  'get list watch create update patch delete deletecollection'.split(' '),
);

interface Observed {
  readonly action: Action;
  /** Rules that make the permission unnecessary if the user has them. */
  readonly unless: readonly PolicyRule[] | undefined;
}

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
  readonly #users = new Map<string, Map<string, Observed>>();

  constructor(access: Pick<Authorizer, 'allows'>) {
    this.#access = access;
  }

  /** @param unless rules that make the permission unnecessary if the user has them */
  add({ name }: User, action: Action, unless?: readonly PolicyRule[]): void {
    let actions = this.#users.get(name);
    if (!actions) {
      if (this.#users.size === MAX_USERS) return;
      actions = new Map();
      this.#users.set(name, actions);
    }
    const key = `${action.verb} ${placeOf(action)}`;
    const known = actions.get(key);
    if (!known && actions.size >= MAX_ACTIONS) return;
    if (!known) actions.set(key, { action, unless });
    else if (known.unless && unless && known.unless !== unless) {
      // Roles of one name, or without a name: all that they grant.
      const further = missingRules(known.unless, unless);
      if (further.length > 0) actions.set(key, { action, unless: [...known.unless, ...further] });
    }
  }

  /**
   * Returns the smallest ClusterRole, without names of objects, that permits all requests of a user so far. It
   * leaves out the permissions of all authenticated users. `bind` and `escalate` are only needed if the other rules do
   * not have what was granted.
   */
  roleOf(user: string): ObservedRole {
    const everybody: User = { name: '', groups: [AUTHENTICATED] };
    const observed = [...(this.#users.get(user)?.values() ?? [])].filter(
      ({ action }) => !this.#access.allows(everybody, action),
    );
    const plain = rulesOf(observed.flatMap(({ action, unless }) => (unless ? [] : [action])));
    const needed = observed.filter(
      ({ unless }) => !unless || missingRules(plain, unless).length > 0,
    );
    return {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: user },
      rules: rulesOf(withoutCovered(needed.map(({ action }) => action))),
    };
  }
}

/** Leaves out actions on named objects if the same action is needed without a name, as `escalate` for a creation. */
function withoutCovered(actions: readonly Action[]): readonly Action[] {
  const keyOf = (action: Action) => `${action.verb} ${placeOf(action)}`;
  const keys = new Set(actions.map(keyOf));
  return actions.filter(
    (action) =>
      action.kind === 'path' ||
      namesOf(action).length === 0 ||
      !keys.has(keyOf({ ...action, name: '' })),
  );
}

/** Returns the rules for actions: one for each group and set of verbs. */
function rulesOf(actions: readonly Action[]): PolicyRule[] {
  const byPlace = Map.groupBy(actions, placeOf);
  const rules = [...byPlace.values()].flatMap((alike) => {
    const [first] = alike;
    const verbs = alike.map(({ verb }) => verb).sort();
    return first ? [ruleOf(first, verbs)] : [];
  });
  const byVerbs = Map.groupBy(rules, ({ apiGroups, verbs, resourceNames }) =>
    JSON.stringify([apiGroups, verbs, resourceNames]),
  );
  const merged = [...byVerbs.values()].flatMap(([first, ...others]) =>
    first ? [others.reduce(withPlaces, first)] : [],
  );
  return merged.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}

/** Formats a role as YAML. */
export function yamlOfRole({ apiVersion, kind, metadata, rules }: ObservedRole): string {
  const list = (values: readonly string[]) => `[${values.map(quote).join(', ')}]`;
  const lines = rules.flatMap((rule) =>
    Object.entries(rule).map(
      ([field, values], index) => `${index === 0 ? '  - ' : '    '}${field}: ${list(values)}`,
    ),
  );
  return [
    `apiVersion: ${apiVersion}`,
    `kind: ${kind}`,
    'metadata:',
    `  name: ${quote(metadata.name)}`,
    rules.length > 0 ? 'rules:' : 'rules: []',
    ...lines,
    '',
  ].join('\n');
}

function quote(text: string): string {
  return JSON.stringify(text);
}

/** Returns what the rules of an action name besides the verb. */
function placeOf(action: Action): string {
  if (action.kind === 'path') return action.path;
  return [action.group, fullResource(action), ...namesOf(action)].join(' ');
}

/** Returns the name of the object if the rules of the verb name it. */
function namesOf({ verb, name }: Action & { readonly kind: 'resource' }): string[] {
  // `impersonate-on:user-info:get` is a permission for a request, too.
  const isRequest = REQUEST_VERBS.has(verb) || verb.startsWith('impersonate-on:');
  return isRequest || name === '' ? [] : [name];
}

function fullResource({ resource, subresource }: Action & { readonly kind: 'resource' }): string {
  return subresource ? `${resource}/${subresource}` : resource;
}

function ruleOf(action: Action, verbs: readonly string[]): PolicyRule {
  if (action.kind === 'path') return { nonResourceURLs: [action.path], verbs };
  const resourceNames = namesOf(action);
  return {
    apiGroups: [action.group],
    resources: [fullResource(action)],
    ...(resourceNames.length > 0 && { resourceNames }),
    verbs,
  };
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
