import { isApiError } from '../api/api-error.ts';
import { controllerOf, controllerReference, isControlledBy } from '../api/metadata.ts';
import { keyOf, objectKey } from '../api/object-key.ts';
import type { ObjectKey } from '../api/object-key.ts';
import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import type { Readiness } from '../api/readiness.ts';
import { apiVersionOf, groupResourceOf } from '../api/resource.ts';
import type { Resource } from '../api/resource.ts';
import type { SharedInformer } from '../cache/shared-informer.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';
import { LruMap } from '../util/lru-map.ts';
import { toBase64 } from '../util/bytes.ts';
import { sha256 } from '../util/sha256.ts';
import { SyncError } from '../workqueue/outcome.ts';
import { deleteOwnedObject, ensureOwnedObject, nameCollision } from './owned-object.ts';
import type {
  AnyObject,
  ExactField,
  OwnedDraft,
  OwnedObjectContext,
  OwnedObjectOutcome,
} from './owned-object.ts';
import { OwnedGraph } from './owned-graph.ts';
import type { OwnedNode } from './owned-graph.ts';
import { mapToOwner, OWNER_INDEX, ownerIndexers } from './enqueue.ts';
import type { OwnedWatches } from './controller-options.ts';
import type { Predicate } from './predicate.ts';
import { Rejections } from './rejections.ts';

/** Rules for the owned objects of one kind. */
export interface OwnedKindOptions<
  T extends KubernetesObject,
  O extends KubernetesObject = KubernetesObject,
> {
  /**
   * Whether objects that differ from the desired state are updated.
   * @default false for Jobs and Pods, whose spec cannot be changed; true for all other kinds
   */
  readonly update?: boolean | undefined;
  /**
   * Whether a field is removed from an object when it is no longer in the desired state. Each object is then applied
   * once after the program has started, and again when its desired state changes. Otherwise fields are only removed
   * together with another update.
   * @default true
   */
  readonly removeFields?: boolean | undefined;
  /**
   * Fields from which members are removed that the desired state does not have, such as `data` of a copied Secret or
   * `spec.paused` of a Deployment. Do not name fields in which the server sets defaults. What admission adds to the writes
   * of the controller stays.
   * @default none: members that others added stay
   */
  readonly exact?: readonly ExactField<T>[] | undefined;
  /**
   * Whether objects that `ensure` does not receive are deleted; a function selects them. Then pass all desired objects
   * of an owner in one call, or select those of the call.
   * @default false
   */
  readonly prune?:
    boolean | ((object: DeepReadonly<T>, owner: DeepReadonly<O>) => boolean) | undefined;
  /**
   * Decides whether an object with the name of a desired one and without a controller is adopted. It is then updated,
   * and deleted with its owner.
   * @default never: `ensure` throws a `SyncError` with the reason `ErrResourceExists`
   */
  readonly adopt?: ((object: DeepReadonly<T>, owner: DeepReadonly<O>) => boolean) | undefined;
}

const OPTIONS: OptionNames<OwnedKindOptions<KubernetesObject>> = {
  update: true,
  removeFields: true,
  exact: true,
  prune: true,
  adopt: true,
};

/** The result of `OwnedObjects.ensure` for one object. */
type OwnedOutcome<T extends KubernetesObject> = Exclude<
  OwnedObjectOutcome<T>,
  { readonly kind: 'nameCollision' }
>;

/** The result of `OwnedObjects.ensureGraph`. */
export interface OwnedGraphResult {
  /** Of all objects: its message says which are not ready, and which wait for them. Return it from `reconcile`. */
  readonly readiness: Readiness;
  /** The objects that were written, or have the desired state, as they are now. */
  readonly objects: readonly DeepReadonly<KubernetesObject>[];
}

/** Rules of one kind, independent of its type. */
interface OwnedKind<O extends KubernetesObject> {
  readonly informer: SharedInformer;
  /** The owners whose desired object has the name of an object that they do not control, by the key of that object. */
  readonly waiting: LruMap<ObjectKey, Set<ObjectKey>>;
  ensure(
    context: OwnedObjectContext,
    owner: DeepReadonly<O>,
    draft: OwnedDraft,
  ): Promise<OwnedObjectOutcome<KubernetesObject>>;
  /** Returns the object of a draft in the cache, if the owner controls it. */
  owned(owner: DeepReadonly<O>, draft: OwnedDraft): DeepReadonly<KubernetesObject> | undefined;
  /** Returns the owned objects that are pruned if they are not desired. */
  prunable(owner: DeepReadonly<O>): DeepReadonly<KubernetesObject>[];
}

/** Resources whose spec cannot be changed. */
const FIXED: ReadonlySet<string> = new Set(['jobs.batch', 'pods']);

/** Start of the log lines about outcomes. */
const VERBS: Partial<Record<OwnedObjectOutcome<KubernetesObject>['kind'], string>> = {
  created: 'Created',
  updated: 'Updated',
};

/** Number of objects whose last applied state is remembered; older ones are applied once more. */
const MAX_APPLIED = 10_000;

/** Number of names of one kind that owners wait for. Whether another name is free is found by a retry. */
const MAX_WAITING = 10_000;

/** Accepts the events after which a name may be free, or its object may be adopted. */
const RELEASES: Predicate = {
  create: (object) => controllerOf(object) === undefined,
  update: (_previous, object) => controllerOf(object) === undefined,
};

/**
 * Keeps the owned objects of each object of one kind in their desired state, with one call for objects of several
 * kinds. Objects are created by POST and updated by server-side apply, so fields that others added stay; see
 * `ensureOwnedObject`. Pass it to `Controller.owns`, so that changes of owned objects are reverted.
 */
export class OwnedObjects<O extends KubernetesObject = KubernetesObject> implements OwnedWatches {
  readonly #owner: Resource<O>;
  readonly #fieldManager: string;
  readonly #kinds = new Map<string, OwnedKind<O>>();
  /** Hash of the state that was last applied, by uid. */
  readonly #applied = new LruMap<string, string>(MAX_APPLIED);
  #isWatched = false;

  /**
   * @param owner resource of the owners
   * @param fieldManager name of the writer in managedFields
   */
  constructor(owner: Resource<O>, fieldManager: string) {
    this.#owner = owner;
    this.#fieldManager = fieldManager;
  }

  /**
   * Adds the kind of `informer` to those that `ensure` writes. Call it before the controllers start.
   *
   * @throws {Error} if `Controller.owns` was called before
   */
  add<T extends KubernetesObject>(
    informer: SharedInformer<T>,
    options: OwnedKindOptions<T, O> = {},
  ): this {
    checkOptions(options, OPTIONS, 'OwnedObjects.add');
    if (this.#isWatched) throw new Error('OwnedObjects.add: call it before Controller.owns');
    const { resource, lister } = informer;
    const { removeFields = true, exact, prune = false, adopt } = options;
    const { update = !FIXED.has(groupResourceOf(resource)) } = options;
    if (!lister.hasIndex(OWNER_INDEX)) informer.addIndexers(ownerIndexers);
    this.#kinds.set(kindId(apiVersionOf(resource), resource.kind), {
      informer,
      waiting: new LruMap(MAX_WAITING),
      ensure: async (context, owner, draft) => {
        const desired = this.#complete(draft, resource, owner);
        const { name, namespace } = desired.metadata;
        const cached = lister.get(objectKey(namespace, name));
        const hash = update && removeFields ? hashOf(desired) : undefined;
        const isApplied = this.#applied.get(cached?.metadata.uid ?? '') === hash;
        const outcome = await ensureOwnedObject<T>(context, {
          resource,
          owner,
          // The kind of the draft is that of the informer.
          desired: desired as OwnedDraft<T>,
          cached,
          fieldManager: this.#fieldManager,
          update: hash === undefined || isApplied ? update : 'always',
          exact,
          adopt: adopt && (async (object) => adopt(object, owner) && this.#exists(context, owner)),
        });
        const { kind, object } = outcome;
        if (hash !== undefined && kind !== 'nameCollision' && kind !== 'terminating') {
          this.#applied.set(object.metadata.uid, hash);
        }
        return outcome;
      },
      owned: (owner, draft) => {
        const object = lister.get(keyOf(this.#complete(draft, resource, owner)));
        return object && isControlledBy(object, owner) ? object : undefined;
      },
      prunable: (owner) => {
        if (prune === false) return [];
        return this.of(informer, owner).filter(
          (object) =>
            object.metadata.deletionTimestamp === undefined &&
            (prune === true || prune(object, owner)),
        );
      },
    });
    return this;
  }

  /** Returns what `Controller.owns` watches, for the kinds that were added. */
  watches(): ReturnType<OwnedWatches['watches']> {
    this.#isWatched = true;
    return [...this.#kinds.values()].flatMap(({ informer, waiting }) => [
      { informer, map: mapToOwner(this.#owner) },
      {
        informer,
        map: (object: DeepReadonly<KubernetesObject>) => [...(waiting.get(keyOf(object)) ?? [])],
        options: { predicates: [RELEASES] },
      },
    ]);
  }

  /** Returns the cached objects of the kind of `informer` that `owner` controls. */
  of<T extends KubernetesObject>(
    informer: SharedInformer<T>,
    owner: DeepReadonly<O>,
  ): DeepReadonly<T>[] {
    return informer.lister.byIndex(OWNER_INDEX, owner.metadata.uid);
  }

  /**
   * Creates and updates the desired objects of `owner` one after another, then prunes. Sends no request if the caches
   * show the desired state. Does nothing if `owner` is being deleted, because the garbage collector deletes its objects.
   * Of kinds without `prune`, objects that are not in `desired` stay: a later call can have another list. Of kinds with
   * `prune`, a second call in one sync must not delete what the first one has kept.
   *
   * @returns an outcome for each desired object, in order. Objects in a Namespace of the list that is being deleted have none
   * @throws {SyncError} `ErrResourceExists`, after all else is done, if an object that `owner` does not control has the name
   * of a desired one. The owner is enqueued when that object is deleted or loses its controller.
   * @throws {TypeError} before the first request, if it would delete an object that another call in this sync has kept; if
   * the kind of a desired object was not added, or the owner cannot own it
   * @throws {ApiError} after all else is done, if the server rejected requests, such as admission: it names their objects, and
   * has the kind of the first error. An error that concerns the server is thrown at once.
   */
  async ensure<T extends KubernetesObject = AnyObject>(
    context: OwnedObjectContext,
    owner: DeepReadonly<O>,
    desired: readonly OwnedDraft<T>[],
  ): Promise<OwnedOutcome<T>[]> {
    return this.#ensureAll(context, owner, desired);
  }

  /**
   * Like `ensure`, for objects that depend on each other: an object is created and updated only while those on which it
   * depends are ready. Objects that are not in the graph are pruned when no object waits.
   *
   * @throws {TypeError} before the first request, if a dependency is missing in the graph or leads back to its object; also as
   * `ensure` does
   */
  async ensureGraph(
    context: OwnedObjectContext,
    owner: DeepReadonly<O>,
    nodes: readonly OwnedNode[],
  ): Promise<OwnedGraphResult> {
    const graph = new OwnedGraph(nodes);
    const outcomes = await this.#ensureAll(context, owner, graph.drafts, graph);
    return { readiness: graph.readiness, objects: outcomes.map(({ object }) => object) };
  }

  /**
   * Deletes the objects of a graph, each after those that depend on it are gone with all that they own. Call it in `cleanUp`:
   * the garbage collector deletes in any order.
   *
   * @returns undefined when nothing is left, and otherwise the readiness of the owner, whose message says which objects are
   * being deleted and what waits for them. The events of the objects cause the next sync
   * @throws {ApiError} after all else is done, if the server rejected a deletion
   */
  async deleteGraph(
    context: OwnedObjectContext,
    owner: DeepReadonly<O>,
    nodes: readonly OwnedNode[],
  ): Promise<Readiness | undefined> {
    const graph = new OwnedGraph(nodes);
    const present = new Map(
      graph.drafts.flatMap((draft) => {
        const kind = this.#kindOf(draft);
        const object = kind.owned(owner, draft);
        return object ? [[draft, { kind, object }] as const] : [];
      }),
    );
    const rejections = new Rejections();
    for (const [draft, { kind, object }] of present) {
      const isNeeded = graph.dependentsOf(draft).some((dependent) => present.has(dependent));
      if (isNeeded || object.metadata.deletionTimestamp !== undefined) continue;
      const { resource } = kind.informer;
      const isDeleted = await rejections.catch(object, () =>
        deleteOwnedObject(context, resource, object, { propagationPolicy: 'Foreground' }),
      );
      if (isDeleted) logWrite(context, `Deleted ${resource.kind}`, object);
    }
    rejections.throw();
    return present.size > 0 ? graph.deletionOf(new Set(present.keys())) : undefined;
  }

  async #ensureAll<T extends KubernetesObject>(
    context: OwnedObjectContext,
    owner: DeepReadonly<O>,
    desired: readonly OwnedDraft<T>[],
    graph?: OwnedGraph,
  ): Promise<OwnedOutcome<T>[]> {
    if (owner.metadata.deletionTimestamp !== undefined) return [];
    this.#requireOneList(context, owner, desired);
    const outcomes: OwnedOutcome<T>[] = [];
    let collision: SyncError | undefined;
    const rejections = new Rejections();
    const rejected = new Set<OwnedKind<O>>();
    const endingNamespaces = new Set<string>();
    for (const draft of desired) {
      const kind = this.#kindOf(draft);
      if (graph?.waits(draft)) continue;
      // The server rejects every object in it, and the deletion of the Namespace starts the next sync.
      if (endingNamespaces.has(draft.metadata.namespace ?? '')) continue;
      const outcome = await rejections.catch(draft, () => kind.ensure(context, owner, draft));
      if (!outcome) {
        rejected.add(kind);
        continue;
      }
      if (outcome.kind === 'nameCollision') {
        const key = keyOf(outcome.object);
        kind.waiting.set(key, (kind.waiting.get(key) ?? new Set()).add(keyOf(owner)));
        const { reason, message } = nameCollision(this.#owner, draft.metadata.name);
        collision ??= new SyncError(message, { reason });
        continue;
      }
      kind.waiting.get(keyOf(outcome.object))?.delete(keyOf(owner));
      context.ensured?.add(outcome.object.metadata.uid);
      if (outcome.kind === 'terminating') {
        context.terminating?.add(`${draft.kind} "${draft.metadata.name}"`);
        if (draft.kind === 'Namespace') endingNamespaces.add(draft.metadata.name);
      } else graph?.observe(draft, outcome.object, context.clock?.now());
      // The object has the kind of the draft.
      outcomes.push(outcome as OwnedOutcome<T>);
      const verb = VERBS[outcome.kind];
      if (verb) logWrite(context, `${verb} ${draft.kind}`, outcome.object);
    }
    const wanted = new Set(outcomes.map(({ object }) => object.metadata.uid));
    const prunedKinds = graph?.isIncomplete ? [] : this.#kinds.values();
    for (const kind of prunedKinds) {
      // An object that is no longer desired stays until those that may replace it exist.
      if (rejected.has(kind)) continue;
      const { resource } = kind.informer;
      for (const object of kind.prunable(owner)) {
        const { metadata } = object;
        if (wanted.has(metadata.uid)) continue;
        const isDeleted = await rejections.catch({ kind: resource.kind, metadata }, () =>
          deleteOwnedObject(context, resource, object),
        );
        if (isDeleted) logWrite(context, `Deleted ${resource.kind}`, object);
      }
    }
    rejections.throw();
    if (collision) throw collision;
    return outcomes;
  }

  #kindOf({ apiVersion, kind: name }: OwnedDraft): OwnedKind<O> {
    const kind = this.#kinds.get(kindId(apiVersion, name));
    if (kind) return kind;
    throw new TypeError(
      `OwnedObjects has no informer of ${apiVersion} ${name}: call add(informer)`,
    );
  }

  /** Two lists would delete each other's objects in each sync. */
  #requireOneList(
    { ensured }: OwnedObjectContext,
    owner: DeepReadonly<O>,
    desired: readonly OwnedDraft[],
  ): void {
    if (!ensured || ensured.size === 0) return;
    for (const kind of this.#kinds.values()) {
      const { resource } = kind.informer;
      const id = kindId(apiVersionOf(resource), resource.kind);
      const wanted = new Set(
        desired
          .filter((draft) => kindId(draft.apiVersion, draft.kind) === id)
          .map((draft) => keyOf(this.#complete(draft, resource, owner))),
      );
      const other = kind
        .prunable(owner)
        .find((object) => ensured.has(object.metadata.uid) && !wanted.has(keyOf(object)));
      if (!other) continue;
      throw new TypeError(
        `OwnedObjects.ensure would delete ${resource.kind} "${keyOf(other)}", which another call in this sync has kept: pass all desired objects of ${this.#owner.kind} "${keyOf(owner)}" in one call, or let prune select the objects of each call`,
      );
    }
  }

  #complete(draft: OwnedDraft, resource: Resource, owner: DeepReadonly<KubernetesObject>) {
    const inherited = resource.namespaced ? owner.metadata.namespace : undefined;
    const { namespace = inherited } = draft.metadata;
    return {
      ...draft,
      metadata: {
        ...draft.metadata,
        ...(namespace !== undefined && { namespace }),
        ownerReferences: [...(draft.metadata.ownerReferences ?? []), controllerReference(owner)],
      },
    };
  }

  /**
   * Returns whether the owner still exists. The cache may be stale, and the garbage collector deletes an object that
   * refers to a deleted owner.
   */
  async #exists(
    { client, signal }: OwnedObjectContext,
    { metadata }: DeepReadonly<KubernetesObject>,
  ): Promise<boolean> {
    try {
      const live = await client.get(this.#owner, metadata, { signal });
      return live.metadata.uid === metadata.uid && live.metadata.deletionTimestamp === undefined;
    } catch (error) {
      if (isApiError(error, 'notFound')) return false;
      throw error;
    }
  }
}

function hashOf(draft: OwnedDraft): string {
  return toBase64(sha256(JSON.stringify(draft)));
}

function kindId(apiVersion: string, kind: string): string {
  return `${apiVersion} ${kind}`;
}

function logWrite(
  { log }: OwnedObjectContext,
  message: string,
  object: DeepReadonly<KubernetesObject>,
): void {
  log?.v(2).info(message, { object: keyOf(object) });
}
