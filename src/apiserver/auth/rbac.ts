import { shallowCopy } from '../objects/resource-definition.ts';
import { oncePerObject } from '../../util/memo.ts';
import { equalJson } from '../../api/equal.ts';
import type { LabelSelector } from '../../api/label-selector.ts';
import {
  formatLabelSelector,
  matchesLabels,
  parseLabelSelector,
} from '../../api/label-selector.ts';
import { goQuote } from '../../util/go-quote.ts';
import type { ObjectStore } from '../storage/object-store.ts';
import type {
  Action,
  Decision,
  PolicyRule,
  ResolvedRules,
  RoleRef,
} from '../../api/policy-rule.ts';
import { ruleCovers } from '../../api/policy-rule.ts';
import type {
  ResourceDefinition,
  StoredObject,
  WriteObserver,
} from '../objects/resource-definition.ts';
import type { User } from '../../api/user.ts';

const GROUP = 'rbac.authorization.k8s.io';
const ROLES = { group: GROUP, plural: 'roles' } as const;
const CLUSTER_ROLES = { group: GROUP, plural: 'clusterroles' } as const;
const ROLE_BINDINGS = { group: GROUP, plural: 'rolebindings' } as const;
const CLUSTER_ROLE_BINDINGS = { group: GROUP, plural: 'clusterrolebindings' } as const;

interface Subject {
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string;
}

interface Role extends StoredObject {
  readonly rules?: readonly PolicyRule[] | null;
  readonly aggregationRule?: { readonly clusterRoleSelectors?: readonly LabelSelector[] };
}

/** A stored RoleBinding or ClusterRoleBinding. */
interface Binding extends StoredObject {
  readonly roleRef: RoleRef;
  readonly subjects?: readonly Subject[] | null;
}

/** A binding and the subject in it that includes a user. */
interface Grant {
  readonly binding: Binding;
  readonly subject: Subject;
}

/**
 * The RBAC authorizer: evaluates the stored roles and bindings as the authorizer of kube-apiserver does. It
 * keeps an index of the bindings by subject, which writes update. It also sets the rules of aggregated
 * ClusterRoles, synchronously after each write of a ClusterRole.
 */
export class Rbac implements WriteObserver {
  readonly #store: ObjectStore;
  /** Grants by `NAMESPACE SUBJECT`, then by the name of the binding. */
  readonly #grants = new Map<string, Map<string, Grant>>();
  /** Indexed bindings by `NAMESPACE/NAME`. */
  readonly #bindings = new Map<string, Binding>();

  constructor(store: ObjectStore) {
    this.#store = store;
  }

  /** @param resources group and plural of each */
  dependsOn(resources: ReadonlySet<string>): boolean {
    return [CLUSTER_ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS].some(({ group, plural }) =>
      resources.has(`${group}/${plural}`),
    );
  }

  /** Reads all bindings and aggregated roles, after a start or a restore. */
  restored(): void {
    this.#grants.clear();
    this.#bindings.clear();
    for (const resource of [ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS]) {
      for (const binding of this.#store.collection(resource).list()) this.#add(binding as Binding);
    }
    this.#aggregate();
  }

  written({ group, plural }: ResourceDefinition, object: StoredObject): void {
    if (group !== GROUP) return;
    if (plural === CLUSTER_ROLES.plural) this.#aggregate();
    if (!isBinding(plural)) return;
    this.#remove(object);
    this.#add(object as Binding);
  }

  removed({ group, plural }: ResourceDefinition, object: StoredObject): void {
    if (group !== GROUP) return;
    if (plural === CLUSTER_ROLES.plural) this.#aggregate();
    if (isBinding(plural)) this.#remove(object);
  }

  /** Decides whether a binding of the user allows the action. */
  decide(user: User, action: Action): Decision {
    const problems: string[] = [];
    for (const grant of this.#grantsOf(user, action.kind === 'path' ? '' : action.namespace)) {
      const rules = this.rulesOfRole(grant.binding.roleRef, grant.binding.metadata.namespace);
      if (typeof rules === 'string') problems.push(rules);
      else if (rules.some((rule) => ruleCovers(rule, action))) {
        return { allowed: true, reason: `RBAC: allowed by ${describe(grant)}` };
      }
    }
    // A kube-apiserver puts the name of the authorizer first if the action is denied.
    const reason = problems.length > 0 ? `rbac: RBAC: ${aggregate(problems)}` : '';
    return { allowed: false, reason };
  }

  /** Returns the rules that bindings grant to a user in a namespace. */
  rulesOf(user: User, namespace: string): ResolvedRules {
    const lists: (readonly PolicyRule[])[] = [];
    const problems: string[] = [];
    for (const { binding } of this.#grantsOf(user, namespace)) {
      const rules = this.rulesOfRole(binding.roleRef, binding.metadata.namespace);
      if (typeof rules === 'string') problems.push(rules);
      else lists.push(rules);
    }
    return { rules: lists.flat(), problems };
  }

  /** Returns the rules of a role, or the error if it does not exist. */
  rulesOfRole({ kind, name }: RoleRef, namespace: string = ''): readonly PolicyRule[] | string {
    const role =
      kind === 'Role'
        ? this.#store.collection(ROLES).get(namespace, name)
        : this.#store.collection(CLUSTER_ROLES).get(undefined, name);
    if (role) return (role as Role).rules ?? [];
    return `${kind.toLowerCase()}.${GROUP} ${goQuote(name)} not found`;
  }

  /** Returns the grants of ClusterRoleBindings, then those of the namespace; each binding once. */
  *#grantsOf({ name, groups }: User, namespace: string): Iterable<Grant> {
    const seen = new Set<Binding>();
    for (const place of namespace === '' ? [''] : ['', namespace]) {
      for (const subject of [`User ${name}`, ...groups.map((group) => `Group ${group}`)]) {
        for (const grant of this.#grants.get(`${place} ${subject}`)?.values() ?? []) {
          if (seen.has(grant.binding)) continue;
          seen.add(grant.binding);
          yield grant;
        }
      }
    }
  }

  #add(binding: Binding): void {
    const { namespace = '', name } = binding.metadata;
    this.#bindings.set(`${namespace}/${name}`, binding);
    for (const subject of binding.subjects ?? []) {
      const key = keyOf(namespace, subject);
      const grants = this.#grants.get(key) ?? new Map<string, Grant>();
      grants.set(name, { binding, subject });
      this.#grants.set(key, grants);
    }
  }

  #remove({ metadata: { namespace = '', name } }: StoredObject): void {
    const binding = this.#bindings.get(`${namespace}/${name}`);
    this.#bindings.delete(`${namespace}/${name}`);
    for (const subject of binding?.subjects ?? []) {
      const key = keyOf(namespace, subject);
      const grants = this.#grants.get(key);
      grants?.delete(name);
      if (grants?.size === 0) this.#grants.delete(key);
    }
  }

  /** Sets the rules of all aggregated ClusterRoles. They may aggregate each other. */
  #aggregate(): void {
    const collection = this.#store.collection(CLUSTER_ROLES);
    const aggregated = (collection.list() as Role[]).filter(
      ({ aggregationRule }) => aggregationRule,
    );
    // Each pass resolves one more level. Roles in a circle could change in every pass.
    for (let pass = 0; pass <= aggregated.length; pass++) {
      let isChanged = false;
      for (const { metadata } of aggregated) {
        const role = collection.get(undefined, metadata.name) as Role;
        const rules = aggregatedRules(role, collection.list());
        if (equalJson(rules, role.rules ?? [])) continue;
        collection.put({ ...shallowCopy(role), rules });
        isChanged = true;
      }
      if (!isChanged) return;
    }
  }
}

function isBinding(plural: string): boolean {
  return plural === ROLE_BINDINGS.plural || plural === CLUSTER_ROLE_BINDINGS.plural;
}

/** Returns the key of a subject of a binding. A ServiceAccount is the user with its name. */
function keyOf(place: string, { kind, name, namespace = place }: Subject): string {
  if (kind !== 'ServiceAccount') return `${place} ${kind} ${name}`;
  return `${place} User system:serviceaccount:${namespace}:${name}`;
}

function aggregatedRules(
  { metadata, aggregationRule }: Role,
  roles: readonly Role[],
): PolicyRule[] {
  const all = new Map<string, PolicyRule>();
  for (const selector of aggregationRule?.clusterRoleSelectors ?? []) {
    const requirements = parseLabelSelector(formatLabelSelector(selector));
    for (const role of roles) {
      if (role.metadata.name === metadata.name) continue;
      if (!matchesLabels(requirements, role.metadata.labels)) continue;
      for (const rule of role.rules ?? []) {
        const text = textOf(rule);
        if (!all.has(text)) all.set(text, rule);
      }
    }
  }
  return [...all.values()];
}

/** Returns the same text for equal rules. */
const textOf = oncePerObject((rule: PolicyRule) =>
  JSON.stringify(rule, Object.keys(rule).toSorted()),
);

function describe({ binding, subject }: Grant): string {
  const { metadata, roleRef } = binding;
  const { namespace } = metadata;
  const [kind, name] = namespace
    ? ['RoleBinding', `${metadata.name}/${namespace}`]
    : ['ClusterRoleBinding', metadata.name];
  const whom =
    subject.kind === 'ServiceAccount'
      ? `${subject.name}/${subject.namespace ?? namespace ?? ''}`
      : subject.name;
  return `${kind} ${goQuote(name)} of ${roleRef.kind} ${goQuote(roleRef.name)} to ${subject.kind} ${goQuote(whom)}`;
}

/** Joins error messages like an aggregate of apimachinery. */
export function aggregate(messages: readonly string[]): string {
  const distinct = [...new Set(messages)];
  return distinct.length === 1 ? distinct.join('') : `[${distinct.join(', ')}]`;
}
