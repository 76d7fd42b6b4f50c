import type { DeepReadonly, KubernetesObject, OwnerReference } from '../../api/object.ts';
import { apiVersionOf } from '../../api/resource.ts';
import type { Resource } from '../../api/resource.ts';

export const FOREGROUND = 'foregroundDeletion';

/** Whether the owner is in a namespace, and the dependent is not in it. */
export function isElsewhere(dependent: GraphNode, owner: GraphNode): boolean {
  return owner.namespace !== undefined && owner.namespace !== dependent.namespace;
}

/** Whether the apiVersion, kind, name and uid of a reference are those of the object. */
export function isNamedBy(reference: DeepReadonly<OwnerReference>, object: GraphNode): boolean {
  return ownerText(reference, undefined) === ownerText(ownIdentity(object), undefined);
}

export function ownIdentity({ resource, name, uid }: GraphNode): OwnerReference {
  return { apiVersion: apiVersionOf(resource), kind: resource.kind, name, uid };
}

/** Returns the identity of an owner as kube-controller-manager prints it. */
export function ownerText(
  { apiVersion, kind, name, uid }: DeepReadonly<OwnerReference>,
  namespace: string | undefined,
): string {
  return `[${apiVersion}/${kind}, namespace: ${namespace ?? ''}, name: ${name}, uid: ${uid}]`;
}

export function isDeletedInForeground(node: GraphNode): boolean {
  return node.deleting && node.finalizers.includes(FOREGROUND);
}

export function blocks(dependent: GraphNode, owner: string): boolean {
  return dependent.owners.some(
    (reference) => reference.uid === owner && reference.blockOwnerDeletion,
  );
}

/** Object in the owner graph. */
export interface GraphNode {
  readonly uid: string;
  readonly resource: Resource;
  readonly name: string;
  readonly namespace: string | undefined;
  readonly owners: DeepReadonly<OwnerReference[]>;
  readonly finalizers: readonly string[];
  readonly deleting: boolean;
}

/** Owner references between cached objects, by uid. The dependents of missing owners are known too. */
export class OwnerGraph {
  readonly #nodes = new Map<string, GraphNode>();
  /** Uids of dependents by the uid of their owner. */
  readonly #dependents = new Map<string, Set<string>>();

  get(uid: string): GraphNode | undefined {
    return this.#nodes.get(uid);
  }

  dependentsOf(uid: string): GraphNode[] {
    return [...(this.#dependents.get(uid) ?? [])].flatMap((dependent) => {
      const node = this.#nodes.get(dependent);
      return node ? [node] : [];
    });
  }

  set(resource: Resource, object: DeepReadonly<KubernetesObject>): GraphNode {
    const { uid, name, namespace, ownerReferences = [], finalizers = [] } = object.metadata;
    this.#unlink(this.#nodes.get(uid));
    const node: GraphNode = {
      uid,
      resource,
      name,
      namespace,
      owners: ownerReferences,
      finalizers,
      deleting: object.metadata.deletionTimestamp !== undefined,
    };
    this.#nodes.set(uid, node);
    for (const owner of node.owners) {
      const dependents = this.#dependents.get(owner.uid);
      if (dependents) dependents.add(uid);
      else this.#dependents.set(owner.uid, new Set([uid]));
    }
    return node;
  }

  delete(uid: string): void {
    this.#unlink(this.#nodes.get(uid));
    this.#nodes.delete(uid);
  }

  #unlink(node: GraphNode | undefined): void {
    for (const owner of node?.owners ?? []) {
      const dependents = this.#dependents.get(owner.uid);
      dependents?.delete(node?.uid ?? '');
      if (dependents?.size === 0) this.#dependents.delete(owner.uid);
    }
  }
}
