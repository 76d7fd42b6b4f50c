import { isApiError } from '../api/api-error.ts';
import { withoutFinalizer } from '../api/metadata.ts';
import { objectKey } from '../api/object-key.ts';
import type { DeepReadonly, KubernetesObject, OwnerReference } from '../api/object.ts';
import { groupResourceOf } from '../api/resource.ts';
import type { Resource } from '../api/resource.ts';
import type { Client } from '../client/client.ts';
import type { Logger } from '../util/logger.ts';
import { LruMap } from '../util/lru-map.ts';
import { done, requeueAfter } from '../workqueue/outcome.ts';
import type { Outcome } from '../workqueue/outcome.ts';
import { WorkQueue } from '../workqueue/work-queue.ts';
import { WorkerPool } from '../workqueue/worker-pool.ts';
import type { Runnable } from '../util/runnable.ts';
import type { ClusterDeps } from './resource-monitors.ts';
import { ResourceMonitors } from './resource-monitors.ts';

const FOREGROUND = 'foregroundDeletion';
const ORPHAN = 'orphan';

/** So many owners whose deletion was seen are remembered while their dependents are judged. */
const REMEMBERED_OWNERS = 1000;

/** How soon what belongs to an owner that no cache has is judged again, in milliseconds. */
const UNHEARD_OWNER_MS = 5000;

/** Finds the resource that an owner reference speaks of; undefined if the server has none. */
export type ResolveKind = (
  reference: Pick<OwnerReference, 'apiVersion' | 'kind'>,
) => Resource | undefined;

/** Dependencies of `GarbageCollector`. */
export interface GarbageCollectorDeps {
  readonly client: Client;
  readonly log: Logger;
  readonly resolve: ResolveKind;
  /** Asks for a run of `collect` for this uid, soon. */
  readonly wake: (uid: string) => void;
}

/**
 * Deletes what nobody owns any more, with the rules of kube-controller-manager's collector: an
 * object goes once all its owners are gone (by uid), an owner deleted in the foreground waits for
 * the dependents that block it, an orphaning one lets go of them first.
 *
 * Nothing is deleted because a cache lacks its owner: unless the owner's deletion was seen, a live
 * read confirms that it is absent. Nothing is kept because of it either: of an owner that is there
 * and that no cache has, the deletion may never be heard, so it is asked for again. A deletion names
 * the uid it is meant for.
 */
export class GarbageCollector {
  readonly graph: OwnerGraph = new OwnerGraph();
  readonly #deps: GarbageCollectorDeps;
  /** By uid, so that none comes back; their kinds may have gone with them. */
  readonly #gone = new LruMap<string, true>(REMEMBERED_OWNERS);

  constructor(deps: GarbageCollectorDeps) {
    this.#deps = deps;
  }

  /** An object appeared or changed. */
  observe(resource: Resource, object: DeepReadonly<KubernetesObject>): void {
    const before = this.graph.get(object.metadata.uid);
    const node = this.graph.set(resource, object);
    if (node.owners.length > 0 || node.deleting) this.#deps.wake(node.uid);
    if (node.deleting && !before?.deleting) this.#wakeAround(node);
  }

  /**
   * An object is gone from its cache.
   *
   * @param isCertain its deletion was seen; otherwise its kind may not be served now
   */
  forget(object: DeepReadonly<KubernetesObject>, isCertain: boolean = true): void {
    const { uid } = object.metadata;
    const node = this.graph.get(uid);
    const dependents = this.graph.dependentsOf(uid);
    if (dependents.length > 0 && isCertain) this.#gone.set(uid, true);
    this.graph.delete(uid);
    if (node) this.#wakeAround(node);
    else this.#wakeAll(dependents);
  }

  /** Does what is due for one object. */
  async collect(uid: string, signal: AbortSignal): Promise<Outcome> {
    const node = this.graph.get(uid);
    if (!node) return done();
    try {
      if (node.deleting) await this.#assistDeletion(node, signal);
      else if (node.owners.length > 0) return await this.#judge(node, signal);
    } catch (error) {
      // Gone, or changed since the cache saw it: the event of that change comes back here.
      if (!isApiError(error, 'notFound', 'conflict')) throw error;
    }
    return done();
  }

  /** The object is being deleted and may wait for us. */
  async #assistDeletion(node: GraphNode, signal: AbortSignal): Promise<void> {
    const dependents = this.graph.dependentsOf(node.uid);
    if (node.finalizers.includes(ORPHAN)) {
      for (const dependent of dependents) await this.#disown(dependent, [node.uid], signal);
      await this.#removeFinalizer(node, ORPHAN, signal);
    } else if (node.finalizers.includes(FOREGROUND)) {
      const blocking = dependents.filter((dependent) => blocks(dependent, node.uid));
      if (blocking.length === 0) await this.#removeFinalizer(node, FOREGROUND, signal);
      else this.#wakeAll(blocking.filter((dependent) => !dependent.deleting));
    }
  }

  /** The object has owners: does it still have reason to be? */
  async #judge(node: GraphNode, signal: AbortSignal): Promise<Outcome> {
    const absent: string[] = [];
    const leaving: string[] = [];
    let isUnheard = false;
    for (const reference of node.owners) {
      const owner = this.graph.get(reference.uid);
      if (owner?.deleting && owner.finalizers.includes(FOREGROUND)) leaving.push(reference.uid);
      else if (!owner) {
        if (await this.#isAbsent(node, reference, signal)) absent.push(reference.uid);
        else isUnheard = true;
      }
    }
    if (absent.length + leaving.length < node.owners.length) {
      if (absent.length > 0) await this.#disown(node, absent, signal);
      return isUnheard ? requeueAfter(UNHEARD_OWNER_MS, 'an owner was not heard of') : done();
    }
    const own = this.graph.dependentsOf(node.uid);
    const foreground = leaving.length > 0 && own.some((dependent) => blocks(dependent, node.uid));
    await this.#deps.client.delete(node.resource, node, {
      uid: node.uid,
      propagationPolicy: foreground ? 'Foreground' : 'Background',
      signal,
    });
    this.#deps.log.v(2).info('Deleted object without owner', {
      resource: groupResourceOf(node.resource),
      object: objectKey(node.namespace, node.name),
      uid: node.uid,
    });
    return done();
  }

  /** A live read: the cache may not have the owner yet, or not watch its kind. */
  async #isAbsent(
    node: GraphNode,
    reference: DeepReadonly<OwnerReference>,
    signal: AbortSignal,
  ): Promise<boolean> {
    if (this.#gone.get(reference.uid)) return true;
    const resource = this.#deps.resolve(reference);
    // A kind that the server does not know now may be known again; deleting could not be undone.
    if (!resource) return false;
    const at = {
      name: reference.name,
      ...(resource.namespaced ? { namespace: node.namespace } : {}),
    };
    try {
      const owner = await this.#deps.client.get(resource, at, { signal });
      return owner.metadata.uid !== reference.uid;
    } catch (error) {
      if (!isApiError(error, 'notFound')) throw error;
      // A 404 that names no object is about its resource, which is not served now.
      return error.details?.name !== undefined;
    }
  }

  /** Removes references to `owners`; others may have been added since the cache saw the object. */
  async #disown(node: GraphNode, owners: readonly string[], signal: AbortSignal): Promise<void> {
    const live = await this.#deps.client.get(node.resource, node, { signal });
    const { uid, resourceVersion } = live.metadata;
    if (uid !== node.uid) return;
    const ownerReferences = (live.metadata.ownerReferences ?? []).filter(
      (reference) => !owners.includes(reference.uid),
    );
    await this.#deps.client.patch(
      node.resource,
      node,
      { type: 'merge', body: { metadata: { uid, resourceVersion, ownerReferences } } },
      { signal },
    );
  }

  async #removeFinalizer(node: GraphNode, finalizer: string, signal: AbortSignal): Promise<void> {
    const live = await this.#deps.client.get(node.resource, node, { signal });
    if (live.metadata.uid !== node.uid) return;
    const { uid, resourceVersion } = live.metadata;
    const finalizers = withoutFinalizer(live, finalizer);
    await this.#deps.client.patch(
      node.resource,
      node,
      { type: 'merge', body: { metadata: { uid, resourceVersion, finalizers } } },
      { signal },
    );
  }

  /** Those whose own case depends on this object. */
  #wakeAround(node: GraphNode): void {
    this.#wakeAll(this.graph.dependentsOf(node.uid));
    for (const { uid } of node.owners) if (this.graph.get(uid)?.deleting) this.#deps.wake(uid);
  }

  #wakeAll(nodes: readonly GraphNode[]): void {
    for (const { uid } of nodes) this.#deps.wake(uid);
  }
}

function blocks(dependent: GraphNode, owner: string): boolean {
  return dependent.owners.some(
    (reference) => reference.uid === owner && reference.blockOwnerDeletion,
  );
}

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

const NAME = 'garbage-collector';

/** Until every resource has been listed, an owner may merely not have been seen. */
const SYNC_POLL_MS = 20;

/** The collector with what it needs: monitors that feed it, and workers that run it. */
export function garbageCollection(deps: ClusterDeps): {
  readonly monitors: Runnable;
  readonly controller: Runnable;
} {
  const { client, clock, log, metrics } = deps;
  const queue = new WorkQueue<string>({ name: NAME, clock }, { metrics: metrics?.workqueue });
  const collector = new GarbageCollector({
    client,
    log,
    resolve: ({ apiVersion, kind }) => monitors.resolve(apiVersion, kind),
    wake: (uid) => queue.add(uid),
  });
  const monitors = new ResourceMonitors(deps, (resource) => ({
    onAdd: (object) => collector.observe(resource, object),
    onUpdate: (old, object) => {
      // After a relist: another of the same name, whose predecessor's deletion was not seen.
      if (old.metadata.uid !== object.metadata.uid) collector.forget(old);
      collector.observe(resource, object);
    },
    onDelete: (object, finalStateKnown) => collector.forget(object, finalStateKnown),
  }));
  const pool = new WorkerPool<string>(
    { name: NAME, queue, clock, log, handler: (uid, { signal }) => collector.collect(uid, signal) },
    { concurrency: 10, keyName: 'uid', metrics: metrics?.reconcile },
  );
  const controller: Runnable = {
    name: NAME,
    run: async (signal) => {
      while (!monitors.hasSynced && !signal.aborted) await clock.sleep(SYNC_POLL_MS, signal);
      await pool.run(signal);
    },
  };
  return { monitors, controller };
}
