import type { DeepReadonly, KubernetesObject, OwnerReference } from '../api/object.ts';
import type { Resource } from '../api/resource.ts';

/** An object as far as garbage collection is concerned. */
export interface GraphNode {
  readonly uid: string;
  readonly resource: Resource;
  readonly name: string;
  readonly namespace: string | undefined;
  readonly owners: DeepReadonly<OwnerReference[]>;
  readonly finalizers: readonly string[];
  readonly deleting: boolean;
}

/**
 * Who owns whom, by uid, as the caches have it. An owner may be missing: its dependents are known
 * all the same.
 */
export class OwnerGraph {
  readonly #nodes = new Map<string, GraphNode>();
  /** Uid of an owner, there or not, to the uids of its dependents. */
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
