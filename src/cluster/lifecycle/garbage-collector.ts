import { isApiError } from '../../api/api-error.ts';
import { withoutFinalizer } from '../../api/metadata.ts';
import { objectKey } from '../../api/object-key.ts';
import type { DeepReadonly, KubernetesObject, OwnerReference } from '../../api/object.ts';
import { groupResourceOf } from '../../api/resource.ts';
import type { Resource } from '../../api/resource.ts';
import type { Client } from '../../client/client.ts';
import type { EventRecorder } from '../../record/event-recorder.ts';
import type { Logger } from '../../util/logger.ts';
import { LruMap } from '../../util/lru-map.ts';
import { done, requeueAfter } from '../../workqueue/outcome.ts';
import type { Outcome } from '../../workqueue/outcome.ts';
import { WorkQueue } from '../../workqueue/work-queue.ts';
import { WorkerPool } from '../../workqueue/worker-pool.ts';
import type { Runnable } from '../../util/runnable.ts';
import type { ClusterDeps, ResourceMonitors } from '../support/resource-monitors.ts';
import {
  FOREGROUND,
  isElsewhere,
  isNamedBy,
  ownIdentity,
  ownerText,
  isDeletedInForeground,
  blocks,
  OwnerGraph,
} from './owner-graph.ts';
import type { GraphNode } from './owner-graph.ts';
import { forEachObject } from '../../manager/rejections.ts';
import { QuietConflicts } from '../../manager/sync-failures.ts';

const ORPHAN = 'orphan';

/** Maximum number of remembered deleted owners. */
const MAX_DELETED_OWNERS = 1000;

/** Interval at which an owner that no cache contains is read again, in milliseconds. */
const UNCACHED_OWNER_MS = 5000;

/** Returns the resource of an owner reference, or undefined if the server does not serve it. */
export type ResolveKind = (
  reference: Pick<OwnerReference, 'apiVersion' | 'kind'>,
) => Resource | undefined;

export interface GarbageCollectorDeps {
  readonly client: Client;
  readonly log: Logger;
  readonly resolve: ResolveKind;
  readonly recorder: Pick<EventRecorder, 'warning'>;
  /** Enqueues a call of `collect` for this uid. */
  readonly enqueue: (uid: string) => void;
}

/**
 * Deletes objects without owners, with the rules of kube-controller-manager's garbage collector: an
 * object is deleted when all its owners are absent: no object has the kind, namespace, name and uid of the
 * reference. A cluster-scoped object with a reference to a namespaced owner is kept. An owner that is
 * deleted in the foreground waits for the dependents that block it. An owner that orphans its dependents
 * removes their owner references first.
 *
 * An owner that is missing in the caches is not treated as deleted: unless its deletion event was
 * observed, a live read confirms that it is absent. If the read finds the owner, it is repeated, because
 * no event reports a later deletion. Deletions have the uid as a precondition.
 */
export class GarbageCollector {
  readonly graph: OwnerGraph = new OwnerGraph();
  readonly #deps: GarbageCollectorDeps;
  /** Identities of owners whose deletion was observed. */
  readonly #deletedOwners = new LruMap<string, true>(MAX_DELETED_OWNERS);

  constructor(deps: GarbageCollectorDeps) {
    this.#deps = deps;
  }

  /** Records an added or changed object. */
  observe(resource: Resource, object: DeepReadonly<KubernetesObject>): void {
    const before = this.graph.get(object.metadata.uid);
    const node = this.graph.set(resource, object);
    if (node.owners.length > 0 || node.deleting) this.#deps.enqueue(node.uid);
    if (node.deleting && !before?.deleting) this.#enqueueRelated(node);
    if (before) this.#enqueueUnblocked(before, node);
    this.#reportOwnersElsewhere(node, before);
  }

  /**
   * Records that an object was removed from its cache.
   *
   * @param isCertain whether the deletion was observed; otherwise the kind may not be served now
   */
  forget(object: DeepReadonly<KubernetesObject>, isCertain: boolean = true): void {
    const { uid } = object.metadata;
    const node = this.graph.get(uid);
    const dependents = this.graph.dependentsOf(uid);
    if (node && dependents.length > 0 && isCertain) {
      this.#deletedOwners.set(ownerText(ownIdentity(node), node.namespace), true);
    }
    this.graph.delete(uid);
    if (node) this.#enqueueRelated(node);
    else this.#enqueueAll(dependents);
  }

  /** Processes one object: helps to delete it, or deletes it if its owners are absent. */
  async collect(uid: string, signal: AbortSignal): Promise<Outcome> {
    const node = this.graph.get(uid);
    if (!node) return done();
    if (node.deleting) await this.#assistDeletion(node, signal);
    else if (node.owners.length > 0) return this.#processOwners(node, signal);
    return done();
  }

  /** Removes the finalizers of the garbage collector from an object that is being deleted. */
  async #assistDeletion(node: GraphNode, signal: AbortSignal): Promise<void> {
    const dependents = this.graph.dependentsOf(node.uid);
    if (node.finalizers.includes(ORPHAN)) {
      const named = dependents.map((dependent) => ({
        kind: dependent.resource.kind,
        metadata: { name: dependent.name },
        dependent,
      }));
      await forEachObject(named, ({ dependent }) =>
        this.#removeOwners(dependent, [node.uid], signal),
      );
      await this.#removeFinalizer(node, ORPHAN, signal);
    } else if (node.finalizers.includes(FOREGROUND)) {
      const blocking = dependents.filter((dependent) => blocks(dependent, node.uid));
      if (blocking.length === 0) await this.#removeFinalizer(node, FOREGROUND, signal);
      else this.#enqueueAll(blocking.filter((dependent) => !dependent.deleting));
    }
  }

  /** Deletes an object if all its owners are absent or waiting for their dependents. */
  async #processOwners(node: GraphNode, signal: AbortSignal): Promise<Outcome> {
    const states = new Map<DeepReadonly<OwnerReference>, OwnerState>();
    for (const reference of node.owners) {
      states.set(reference, await this.#stateOf(node, reference, signal));
    }
    const referencesIn = (...wanted: OwnerState[]) =>
      [...states].filter(([, state]) => wanted.includes(state)).map(([{ uid }]) => uid);
    // As upstream, one such reference keeps the object and its other references.
    if (referencesIn('invalid').length > 0) return done();
    const retry = requeueAfter(UNCACHED_OWNER_MS, 'an owner is not in the caches');
    if (referencesIn('unknown').length > 0) return retry;
    const waiting = referencesIn('waiting');
    // An owner that waits for its dependents must not wait for one that another owner keeps.
    const removed = [...referencesIn('absent'), ...waiting];
    if (removed.length < node.owners.length) {
      if (removed.length > 0) await this.#removeOwners(node, removed, signal);
      return referencesIn('uncached').length > 0 ? retry : done();
    }
    const ownDependents = this.graph.dependentsOf(node.uid);
    const foreground = waiting.length > 0 && ownDependents.length > 0;
    // The object and its dependent may be in a circle, in which each would wait for the other.
    if (foreground && ownDependents.some(isDeletedInForeground)) {
      await this.#unblockOwners(node, signal);
    }
    const propagationPolicy = foreground ? 'Foreground' : 'Background';
    const options = { uid: node.uid, propagationPolicy, signal } as const;
    const isDeleted = await unlessGone(async () => {
      await this.#deps.client.delete(node.resource, node, options);
      return true;
    });
    if (!isDeleted) return done();
    this.#deps.log.v(2).info('Deleted object without owners', {
      resource: groupResourceOf(node.resource),
      object: objectKey(node.namespace, node.name),
      uid: node.uid,
    });
    return done();
  }

  /** Reads an owner that is not in the graph, because the cache may be behind or not contain its kind. */
  async #stateOf(
    node: GraphNode,
    reference: DeepReadonly<OwnerReference>,
    signal: AbortSignal,
  ): Promise<OwnerState> {
    const cached = this.graph.get(reference.uid);
    if (cached && !isElsewhere(node, cached) && isNamedBy(reference, cached)) {
      return isDeletedInForeground(cached) ? 'waiting' : 'present';
    }
    const { namespace } = node;
    if ([undefined, namespace].some((at) => this.#deletedOwners.get(ownerText(reference, at)))) {
      return 'absent';
    }
    const resource = this.#deps.resolve(reference);
    // The kind may be served again later, and a deletion cannot be undone.
    if (!resource) return 'unknown';
    if (resource.namespaced && namespace === undefined) return 'invalid';
    const at = { name: reference.name, ...(resource.namespaced && { namespace }) };
    try {
      const live = await unlessGone(() => this.#deps.client.get(resource, at, { signal }));
      if (live?.metadata.uid !== reference.uid) return 'absent';
      const { deletionTimestamp, finalizers = [] } = live.metadata;
      if (deletionTimestamp && finalizers.includes(FOREGROUND)) return 'waiting';
      return cached ? 'present' : 'uncached';
    } catch (error) {
      if (!isApiError(error, 'notFound')) throw error;
      return 'unknown';
    }
  }

  /** Records an event for each dependent whose owner is in another namespace, when the second of both is observed. */
  #reportOwnersElsewhere(node: GraphNode, before: GraphNode | undefined): void {
    const known = new Set(before?.owners.map(({ uid }) => uid));
    for (const reference of node.owners) {
      const owner = this.graph.get(reference.uid);
      if (!owner || known.has(reference.uid)) continue;
      const isReported = isElsewhere(node, owner);
      if (isReported) this.#reportElsewhere(node, reference.uid);
      // As upstream, which reports only the first reference that does not match its owner.
      if (isReported || !isNamedBy(reference, owner)) break;
    }
    if (before) return;
    for (const dependent of this.graph.dependentsOf(node.uid)) {
      if (isElsewhere(dependent, node)) this.#reportElsewhere(dependent, node.uid);
    }
  }

  #reportElsewhere(dependent: GraphNode, owner: string): void {
    const { namespace } = dependent;
    const reference = dependent.owners.find(({ uid }) => uid === owner);
    if (!reference) return;
    const { apiVersion, kind, name, uid } = ownIdentity(dependent);
    this.#deps.recorder.warning(
      { apiVersion, kind, metadata: { name, namespace, uid } },
      'OwnerRefInvalidNamespace',
      `ownerRef ${ownerText(reference, namespace)} does not exist in namespace "${namespace ?? ''}"`,
    );
  }

  /** Removes the references to `owners`, and keeps those that other clients added meanwhile. */
  #removeOwners(node: GraphNode, owners: readonly string[], signal: AbortSignal): Promise<void> {
    return this.#change(node, signal, ({ metadata: { ownerReferences = [] } }) => ({
      ownerReferences: ownerReferences.filter(({ uid }) => !owners.includes(uid)),
    }));
  }

  /** Keeps the references to the owners, but no deletion of an owner waits for the object. */
  #unblockOwners(node: GraphNode, signal: AbortSignal): Promise<void> {
    return this.#change(node, signal, ({ metadata: { ownerReferences = [] } }) => ({
      ownerReferences: ownerReferences.map((reference) => ({
        ...reference,
        blockOwnerDeletion: false,
      })),
    }));
  }

  #removeFinalizer(node: GraphNode, finalizer: string, signal: AbortSignal): Promise<void> {
    return this.#change(node, signal, (live) => ({
      finalizers: withoutFinalizer(live, finalizer),
    }));
  }

  /** Merges what `change` returns into the metadata of the live object, unless it was replaced. */
  async #change(
    node: GraphNode,
    signal: AbortSignal,
    change: (live: KubernetesObject) => object,
  ): Promise<void> {
    const { client } = this.#deps;
    await unlessGone(async () => {
      const live = await client.get(node.resource, node, { signal });
      const { uid, resourceVersion } = live.metadata;
      if (uid !== node.uid) return;
      const body = { metadata: { uid, resourceVersion, ...change(live) } };
      await client.patch(node.resource, node, { type: 'merge', body }, { signal });
    });
  }

  /** Enqueues owners that are being deleted and no longer wait for the object. */
  #enqueueUnblocked(before: GraphNode, after: GraphNode): void {
    for (const { uid } of before.owners) {
      if (!this.graph.get(uid)?.deleting || !blocks(before, uid)) continue;
      if (!blocks(after, uid)) this.#deps.enqueue(uid);
    }
  }

  /** Enqueues the dependents of an object, and its owners that are being deleted. */
  #enqueueRelated(node: GraphNode): void {
    this.#enqueueAll(this.graph.dependentsOf(node.uid));
    for (const { uid } of node.owners) if (this.graph.get(uid)?.deleting) this.#deps.enqueue(uid);
  }

  #enqueueAll(nodes: readonly GraphNode[]): void {
    for (const { uid } of nodes) this.#deps.enqueue(uid);
  }
}

/**
 * Returns the result of `work`, or undefined if its object does not exist. A 404 without the name of an object means that
 * the resource is not served.
 */
async function unlessGone<R>(work: () => Promise<R>): Promise<R | undefined> {
  try {
    return await work();
  } catch (error) {
    if (isApiError(error, 'notFound') && error.details?.name !== undefined) return undefined;
    throw error;
  }
}

/** `invalid`: the object is cluster-scoped, but the owner is namespaced. `unknown`: the kind is not served. */
type OwnerState = 'present' | 'uncached' | 'waiting' | 'absent' | 'invalid' | 'unknown';

const NAME = 'garbage-collector';

/** Interval of checks whether all resources are listed. Until then, owners may be missing. */
const SYNC_POLL_MS = 20;

/** Returns the workers of the garbage collector, which `monitors` feed. */
export function garbageCollection(deps: ClusterDeps, monitors: ResourceMonitors): Runnable {
  const { client, clock, log, metrics } = deps;
  const queue = new WorkQueue<string>({ name: NAME, clock }, { metrics: metrics?.workqueue });
  const collector = new GarbageCollector({
    client,
    log,
    resolve: ({ apiVersion, kind }) => monitors.resolve(apiVersion, kind),
    recorder: deps.events.recorder('garbage-collector-controller'),
    enqueue: (uid) => queue.add(uid),
  });
  monitors.addHandler((resource) => ({
    onAdd: (object) => collector.observe(resource, object),
    onUpdate: (old, object) => {
      // After a relist, the object can be a new one with the same name.
      if (old.metadata.uid !== object.metadata.uid) collector.forget(old);
      collector.observe(resource, object);
    },
    onDelete: (object, finalStateKnown) => collector.forget(object, finalStateKnown),
  }));
  const conflicts = new QuietConflicts<string>();
  const collect = (uid: string, { signal }: { readonly signal: AbortSignal }) =>
    collector.collect(uid, signal);
  const pool = new WorkerPool<string>(
    { name: NAME, queue, clock, log, handler: conflicts.wrap(collect) },
    { concurrency: 10, keyName: 'uid', metrics: metrics?.reconcile },
  );
  return {
    name: NAME,
    run: async (signal) => {
      while (!monitors.hasSynced && !signal.aborted) await clock.sleep(SYNC_POLL_MS, signal);
      await pool.run(signal);
    },
  };
}
