import { compareText } from '../../util/values.ts';
import { HistoryBudget } from './history-budget.ts';
import type {
  ApiObject,
  ResourceDefinition,
  StoredObject,
} from '../objects/resource-definition.ts';
import { expired, tooLargeResourceVersion } from '../objects/status-error.ts';
import type { StoreLog, StoreSnapshot } from './store-log.ts';
import { WatchHistory } from './watch-history.ts';

export interface ObjectStoreOptions {
  /**
   * Maximum number of changes of each resource that a watch can resume from.
   * @default 10_000
   */
  readonly historySize?: number;
  /**
   * Approximate memory for the changes of all resources, in bytes. Beyond it, old changes are dropped.
   * @default 64 MiB
   */
  readonly historyBytes?: number;
  /**
   * Records each write before it takes effect. A new log gets a first snapshot from `load`.
   * @default none: the objects are in memory only
   */
  readonly log?: StoreLog | undefined;
  /**
   * Called with each write before it takes effect.
   * @default none
   */
  readonly onWrite?: StoreObserver | undefined;
}

/** @param resource group and plural: `apps/deployments` */
export type StoreObserver = (resource: string, object: StoredObject, removed: boolean) => void;

interface StoredResource extends Pick<ResourceDefinition, 'group' | 'plural'> {
  readonly storedAs?: { readonly definition: Pick<ResourceDefinition, 'group' | 'plural'> };
}

/**
 * All objects of the server, in the role of etcd. Every write to any resource increments one revision.
 * Stored objects are immutable, so that each is a snapshot and reads need no copies.
 *
 * All methods are synchronous: no other code runs between a read and a write.
 */
export class ObjectStore {
  readonly #historySize: number;
  readonly #budget: HistoryBudget;
  readonly #log: StoreLog | undefined;
  readonly #onWrite: StoreObserver | undefined;
  readonly #collections = new Map<string, Collection>();
  #waiting: { readonly revision: number; readonly wake: () => void }[] = [];
  #revision = 1;
  #compacted = 1;

  constructor(options: ObjectStoreOptions = {}) {
    const { historySize = 10_000, historyBytes = 64 * 1024 ** 2, log, onWrite } = options;
    this.#historySize = historySize;
    this.#log = log;
    this.#onWrite = onWrite;
    this.#budget = new HistoryBudget(historyBytes);
  }

  /** Approximate memory of the histories of all resources, in bytes. */
  get historyBytes(): number {
    return this.#budget.used;
  }

  /** Revision of the last write. */
  get revision(): number {
    return this.#revision;
  }

  /** Returns the objects of one resource, which all its versions and representations share. */
  collection(resource: StoredResource): Collection {
    const { group, plural } = resource.storedAs?.definition ?? resource;
    return this.#collection(`${group}/${plural}`);
  }

  /** Returns the number of objects of each resource that has any. */
  counts(): { readonly group: string; readonly resource: string; readonly number: number }[] {
    return Array.from(this.#collections, ([key, { size: number }]) => {
      const [group = '', resource = ''] = key.split('/');
      return { group, resource, number };
    }).filter(({ number }) => number > 0);
  }

  collections(): Iterable<Collection> {
    return this.#collections.values();
  }

  /** Drops the history like etcd's compaction: older revisions get 410. */
  compact(): void {
    this.#compacted = this.#revision;
    for (const collection of this.#collections.values()) {
      collection.history.compact(this.#revision);
    }
  }

  /** Returns a backup. It shares the objects, which are immutable. */
  snapshot(): StoreSnapshot {
    const objects = Array.from(this.#collections, ([key, each]) => [key, each.list()] as const);
    return { revision: this.#revision, objects: new Map(objects) };
  }

  /**
   * Replaces all objects by a snapshot. As after a restore of etcd, the revision is the snapshot's, and
   * no watch can resume from an earlier one. Returns the group and plural of each resource whose objects are others.
   */
  restore({ revision, objects }: StoreSnapshot): ReadonlySet<string> {
    this.#revision = revision;
    this.#compacted = revision;
    const changed = new Set<string>();
    for (const [key, collection] of this.#collections) {
      if (collection.restore(objects.get(key) ?? [], revision)) changed.add(key);
    }
    this.#log?.startFile(this.snapshot(), 'drop');
    return changed;
  }

  /** Closes the log. With a log, no write is possible afterwards. */
  close(): void {
    this.#log?.close();
  }

  /**
   * Loads the objects and the history of the log. Returns false if the log is new.
   *
   * @throws {Error} if the log is damaged
   */
  load(): boolean {
    const log = this.#log;
    if (!log || log.isEmpty) {
      log?.startFile(this.snapshot(), 'drop');
      return false;
    }
    for (const entry of log.read()) {
      if (entry.kind === 'snapshot') {
        this.#revision = entry.revision;
        this.#compacted = entry.revision;
        for (const { history } of this.#collections.values()) history.restart(entry.revision);
        continue;
      }
      const collection = this.#collection(entry.resource);
      if (entry.kind === 'object') {
        collection.add(entry.object);
        continue;
      }
      this.#revision = entry.revision;
      if (entry.kind === 'put') collection.repeatPut(entry.object, entry.revision);
      else collection.repeatRemove(entry.namespace, entry.name, entry.revision);
    }
    return true;
  }

  /** Calls `wake` once `revision` is reached. The returned function cancels. */
  whenReached(revision: number, wake: () => void): () => void {
    const waiter = { revision, wake };
    this.#waiting.push(waiter);
    return () => {
      this.#waiting = this.#waiting.filter((other) => other !== waiter);
    };
  }

  /** Repeats a write that is known to lead to this object in the current state. */
  repeat(resource: string, object: StoredObject, removed: boolean): void {
    const { namespace, name } = object.metadata;
    const collection = this.#collection(resource);
    this.#commit(resource, object, removed);
    if (removed) collection.repeatRemove(namespace, name, this.#revision);
    else collection.repeatPut(object, this.#revision);
  }

  #collection(key: string): Collection {
    let collection = this.#collections.get(key);
    if (!collection) {
      collection = new Collection(
        () => this.#revision,
        (object, removed) => this.#commit(key, object, removed),
        new WatchHistory(this.#historySize, this.#compacted, this.#budget),
      );
      this.#collections.set(key, collection);
    }
    return collection;
  }

  /** Makes a write durable, and then the next revision the current one. */
  #commit(key: string, object: StoredObject, removed: boolean): void {
    const revision = this.#revision + 1;
    if (this.#log) this.#record(this.#log, revision, key, object, removed);
    this.#onWrite?.(key, object, removed);
    this.#revision = revision;
    if (this.#waiting.length > 0) {
      const reached = this.#waiting.filter((waiter) => waiter.revision <= revision);
      this.#waiting = this.#waiting.filter((waiter) => waiter.revision > revision);
      for (const { wake } of reached) wake();
    }
  }

  #record(
    log: StoreLog,
    revision: number,
    resource: string,
    object: StoredObject,
    removed: boolean,
  ): void {
    if (log.isFull) log.startFile(this.snapshot(), 'keep');
    const { namespace, name } = object.metadata;
    log.append(
      removed
        ? { kind: 'remove', revision, resource, namespace, name }
        : { kind: 'put', revision, resource, object },
    );
  }
}

/** The objects of one namespace (or all of a cluster-scoped resource) by name. */
interface Bucket {
  readonly objects: Map<string, StoredObject>;
  /** Sorted names; undefined after a name was added or removed. */
  sorted: readonly string[] | undefined;
}

/** The objects of one resource, in the order of their keys, with their recent history. */
export class Collection {
  readonly history: WatchHistory;
  readonly #currentRevision: () => number;
  readonly #commit: (object: StoredObject, removed: boolean) => void;
  readonly #buckets = new Map<string, Bucket>();
  #size = 0;

  /** @param commit records a write under the next revision; throws if the write is not possible */
  constructor(
    currentRevision: () => number,
    commit: (object: StoredObject, removed: boolean) => void,
    history: WatchHistory,
  ) {
    this.#currentRevision = currentRevision;
    this.#commit = commit;
    this.history = history;
  }

  get size(): number {
    return this.#size;
  }

  get(namespace: string | undefined, name: string): StoredObject | undefined {
    return this.#buckets.get(namespace ?? '')?.objects.get(name);
  }

  /** Returns the objects of one namespace or of all. */
  list(namespace?: string): StoredObject[] {
    if (namespace !== undefined) return this.#listBucket(namespace);
    // The order of keys in etcd: `a-b/x` precedes `a/x`.
    const namespaces = [...this.#buckets.keys()].sort((a, b) => compareText(`${a}/`, `${b}/`));
    return namespaces.flatMap((each) => this.#listBucket(each));
  }

  /**
   * Returns the objects at `revision`.
   *
   * @throws {StatusError} 410 if the revision is compacted, 504 if it is in the future
   */
  listAt(revision: number, namespace?: string): StoredObject[] {
    const current = this.#currentRevision();
    if (revision > current) throw tooLargeResourceVersion(revision, current);
    if (revision < this.history.compacted) {
      throw expired('The resourceVersion for the provided list is too old.');
    }
    const undone = this.history.since(revision).toReversed();
    if (undone.length === 0) return this.list(namespace);
    const then = new Map(this.list(namespace).map((object) => [storageKey(object), object]));
    for (const { object, previous } of undone) {
      if (namespace !== undefined && object.metadata.namespace !== namespace) continue;
      if (previous) then.set(storageKey(object), previous);
      else then.delete(storageKey(object));
    }
    return [...then].sort(([a], [b]) => compareText(a, b)).map(([, object]) => object);
  }

  /** Creates or replaces an object. Its resourceVersion is the new revision. */
  put(object: ApiObject): StoredObject {
    const revision = this.#currentRevision() + 1;
    object.metadata.resourceVersion = String(revision);
    this.#commit(object, false);
    this.repeatPut(object, revision);
    return object;
  }

  /** Removes an object. Returns its last state at the revision of the removal. */
  remove(object: StoredObject): StoredObject {
    const revision = this.#currentRevision() + 1;
    const last = atRevision(object, revision);
    this.#commit(last, true);
    this.#delete(object);
    this.history.record({ revision, object: last, previous: object, removed: true });
    return last;
  }

  /** Adds an object with its resourceVersion, without a write. Returns the object that it replaces. */
  add(object: StoredObject): StoredObject | undefined {
    const { namespace = '', name } = object.metadata;
    let bucket = this.#buckets.get(namespace);
    if (!bucket) {
      bucket = { objects: new Map(), sorted: undefined };
      this.#buckets.set(namespace, bucket);
    }
    const previous = bucket.objects.get(name);
    if (!previous) {
      bucket.sorted = undefined;
      this.#size++;
    }
    bucket.objects.set(name, object);
    return previous;
  }

  /** Repeats a write of the log that is the current revision. */
  repeatPut(object: StoredObject, revision: number): void {
    const previous = this.add(object);
    this.history.record({ revision, object, previous, removed: false });
  }

  /** Repeats a removal of the log that is the current revision. */
  repeatRemove(namespace: string | undefined, name: string, revision: number): void {
    const previous = this.get(namespace, name);
    if (!previous) return;
    this.#delete(previous);
    const object = atRevision(previous, revision);
    this.history.record({ revision, object, previous, removed: true });
  }

  /**
   * Replaces all objects by `objects` with their resourceVersions, without a write. Returns false if they are those that it
   * has.
   */
  restore(objects: readonly StoredObject[], revision: number): boolean {
    this.history.restart(revision);
    const isKept = ({ metadata: { namespace, name } }: StoredObject, index: number) =>
      this.get(namespace, name) === objects[index];
    if (objects.length === this.#size && objects.every(isKept)) return false;
    this.#buckets.clear();
    this.#size = 0;
    for (const object of objects) this.add(object);
    return true;
  }

  /** Replaces each object by the result of `read`, without a write, after a schema change. */
  reinterpret(read: (object: StoredObject) => StoredObject): void {
    const results = new Map<StoredObject, StoredObject>();
    const once = (object: StoredObject) => {
      const result = results.get(object) ?? read(object);
      results.set(object, result);
      return result;
    };
    for (const { objects } of this.#buckets.values()) {
      for (const [name, object] of objects) objects.set(name, once(object));
    }
    this.history.reinterpret(once);
  }

  #delete({ metadata: { namespace = '', name } }: StoredObject): void {
    const bucket = this.#buckets.get(namespace);
    if (!bucket?.objects.delete(name)) return;
    bucket.sorted = undefined;
    this.#size--;
    if (bucket.objects.size === 0) this.#buckets.delete(namespace);
  }

  #listBucket(namespace: string): StoredObject[] {
    const bucket = this.#buckets.get(namespace);
    if (!bucket) return [];
    const { objects } = bucket;
    bucket.sorted ??= [...objects.keys()].sort(compareText);
    return bucket.sorted.flatMap((name) => objects.get(name) ?? []);
  }
}

/** Returns `object` with `revision` as resourceVersion. */
export function atRevision(object: StoredObject, revision: number): StoredObject {
  return { ...object, metadata: { ...object.metadata, resourceVersion: String(revision) } };
}

/** Returns the key that orders the objects of a resource, as in etcd. */
export function storageKey({ metadata }: StoredObject): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`;
}
