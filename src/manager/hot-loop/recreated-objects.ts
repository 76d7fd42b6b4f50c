import { changedPaths, valueAt } from '../../api/field-path.ts';
import type { FieldPath } from '../../api/field-path.ts';
import { controllerOf } from '../../api/metadata.ts';
import { objectKey } from '../../api/object-key.ts';
import type { ObjectKey } from '../../api/object-key.ts';
import type { DeepReadonly, KubernetesObject, OwnerReference } from '../../api/object.ts';
import { groupResourceOf } from '../../api/resource.ts';
import type { Resource } from '../../api/resource.ts';
import { MAX_INTERVAL_MS } from './written-object.ts';
import type { HotLoop } from './written-object.ts';

/** Number of times that a key gives up an object of its own and creates it again that makes a hot loop. */
const RECREATE_LIMIT = 5;

/**
 * Longest life of an object that another client deletes soon after its creation, and the longest time between two
 * creations of such an object, in milliseconds.
 */
const SHORT_LIFE_MS = 10_000;

const MAX_OBJECTS = 256;
const MAX_PATHS = 3;
/** Number of names with one prefix, and of their objects, that are remembered. */
const MAX_NAMES = 8;
/** Number of different fields that are looked at, most of which are defaults of the server. */
const MAX_COMPARED = 256;

/** An object of an event; undefined before its creation and after its deletion. */
type Observed = DeepReadonly<KubernetesObject> | undefined;

/**
 * An object that a key creates again and again: one name, the names with one prefix, or any name after the key has
 * released the object.
 */
interface RecreatedObject {
  readonly resource: Resource;
  readonly namespace: string | undefined;
  /** Names of the last objects, the last one first. */
  readonly names: readonly [string, ...string[]];
  /** Version of the last object as it was created. */
  readonly version: string;
  /** Uid of the last object of a name, or uids of the last ones with a prefix. */
  readonly uids: readonly string[];
  /** Uids of the last objects that another client deleted soon after their creation. The event can precede the response. */
  readonly vanished: Set<string>;
  /** The object as it was sent. */
  readonly sent: unknown;
  readonly fieldManager: string | undefined;
  /** Fields that differ, see `HotLoop.changedBy`. */
  paths: readonly FieldPath[];
  changedBy: HotLoop['changedBy'];
  /** Whether another client changed the last object. */
  isChanged: boolean;
  /** Whether the key has deleted or released one of the objects since, or does not own the last one. */
  isGone: boolean;
  /** Whether an event since the creation is a reason for another desired state. */
  hasInput: boolean;
  /** Sync in which it was created. */
  readonly round: number;
  readonly times: number;
  readonly sinceMs: number;
  readonly lastMs: number;
}

/** A successful create. */
export interface Creation {
  readonly resource: Resource;
  /** Key of the object, or `NAMESPACE/PREFIX*`. */
  readonly at: string;
  readonly sent: unknown;
  readonly answer: KubernetesObject;
  readonly fieldManager: string | undefined;
}

/**
 * The objects that one key gives up and creates again without a reason. That happens if a controller deletes or
 * releases what differs from the desired state, and admission or another client changes each new object, or if the
 * desired state differs each time. Objects that admission gives to another owner are given up, too. Objects with
 * generated names count only if a field of them was changed.
 *
 * Also the objects that another client deletes soon after each creation. The garbage collector does so if the owner has been
 * deleted and the cache does not show it, and a taint manager if a Pod does not tolerate its node. An object that lives
 * longer resets the count; of those with one prefix, each of the last ones must have been deleted.
 */
export class RecreatedObjects {
  readonly #objects = new Map<string, RecreatedObject>();
  /** The objects by the keys of the last ones. */
  readonly #byName = new Map<string, RecreatedObject>();
  /** The last object of each resource that the key has released, or does not own. */
  readonly #released = new Map<string, RecreatedObject>();
  #round = 0;
  #hasChanged = false;

  /** @param isInLoop whether the creations of the key are far apart because they are postponed */
  created(creation: Creation, now: number, isInLoop: boolean = false): void {
    const { resource, at, sent, answer, fieldManager } = creation;
    const { namespace, name, resourceVersion, uid } = answer.metadata;
    const id = idOf(resource, at);
    const before = this.#objects.get(id);
    const known = before ?? this.#released.get(groupResourceOf(resource));
    if (!before && this.#objects.size >= MAX_OBJECTS) this.#forgetOld(now);
    if (!before && this.#objects.size >= MAX_OBJECTS) return;
    const isGivenUp = known?.isGone === true;
    const hasVanished = !isGivenUp && before?.uids.every((last) => before.vanished.has(last));
    const maxMs = isInLoop ? Infinity : hasVanished ? SHORT_LIFE_MS : MAX_INTERVAL_MS;
    const isAgain =
      (isGivenUp || hasVanished) && !known?.hasInput && now - (known?.lastMs ?? 0) <= maxMs;
    // The first creation of an object, which is the usual one, compares nothing.
    const change = isAgain && known ? changeOf(known, creation, isGivenUp) : undefined;
    const isPrefix = at.endsWith('*');
    const isNamed = before !== undefined && !isPrefix;
    const counts = change !== undefined && (isNamed || change.changedBy !== 'nothing');
    // The objects with one prefix that one sync creates count once.
    const isBeside = known?.round === this.#round && known.times > 0;
    const continues = isBeside || counts;
    const object: RecreatedObject = {
      resource,
      namespace,
      names: [name, ...(before?.names ?? []).slice(0, MAX_NAMES - 1)],
      version: resourceVersion,
      uids: isPrefix ? [uid, ...(before?.uids ?? []).slice(0, MAX_NAMES - 1)] : [uid],
      vanished: before?.vanished ?? new Set(),
      sent,
      fieldManager,
      paths: change?.paths ?? known?.paths ?? [],
      changedBy: change?.changedBy ?? known?.changedBy ?? 'nothing',
      isChanged: false,
      isGone: false,
      hasInput: false,
      round: this.#round,
      times: (continues ? (known?.times ?? 0) : 0) + Number(counts && !isBeside),
      sinceMs: continues ? (known?.sinceMs ?? now) : now,
      lastMs: now,
    };
    if (counts) this.#hasChanged = true;
    if (before) this.#forgetNames(before);
    this.#objects.set(id, object);
    for (const own of object.names)
      this.#byName.set(idOf(resource, objectKey(namespace, own)), object);
    this.#checkOwner(object, answer);
  }

  /** @param at key of the object that was deleted */
  deleted(resource: Resource, at: string): void {
    const object = this.#byName.get(idOf(resource, at));
    if (object) object.isGone = true;
  }

  /** Records a write of the key to an object. It may release the object. */
  written(resource: Resource, answer: KubernetesObject): void {
    const { namespace, name } = answer.metadata;
    const object = this.#byName.get(idOf(resource, objectKey(namespace, name)));
    if (object) this.#checkOwner(object, answer);
  }

  /** Records whether the key owns the object. */
  #checkOwner(object: RecreatedObject, answer: KubernetesObject): void {
    if (isOwnedAsSent(object.sent, answer)) return;
    object.isGone = true;
    this.#released.set(groupResourceOf(object.resource), object);
  }

  /** Records an event that the key did not cause. */
  observe(resource: Resource, before: Observed, after: Observed, now: number): void {
    if (this.#objects.size === 0) return;
    const { namespace, name } = (after ?? before)?.metadata ?? {};
    const object = this.#byName.get(idOf(resource, objectKey(namespace, name ?? '')));
    if (object) {
      if (before && isDeletion(before, after)) noteDeletion(object, before.metadata.uid, now);
      if (object.times > 0 && before && after) noteChange(object, before, after);
      return;
    }
    const others = [...this.#objects.values()].filter(
      (known) => !known.hasInput && groupResourceOf(known.resource) !== groupResourceOf(resource),
    );
    if (others.length === 0 || !isInput(before, after)) return;
    for (const known of others) known.hasInput = true;
  }

  /** Starts a sync. Returns whether an object was created again in the last one. */
  takeChange(): boolean {
    const hasChanged = this.#hasChanged;
    this.#hasChanged = false;
    this.#round++;
    return hasChanged;
  }

  /** Returns the hot loop of `key`, or undefined. */
  findLoop(key: ObjectKey): HotLoop | undefined {
    for (const object of this.#objects.values()) {
      const { resource, namespace, names, fieldManager, paths, times, sinceMs, lastMs } = object;
      if (times < RECREATE_LIMIT) continue;
      const { changedBy, isChanged } = object;
      // Once the other client has changed the object, managedFields names that client.
      if (changedBy === 'others' && !isChanged && times < 2 * RECREATE_LIMIT) continue;
      const withinMs = lastMs - sinceMs;
      const base = { key, resource, namespace, name: names[0], fieldManager };
      return { ...base, kind: 'recreated', changedBy, paths, times, withinMs };
    }
    return undefined;
  }

  /** Resets the counts after the end of a loop. */
  reset(): void {
    this.#objects.clear();
    this.#byName.clear();
    this.#released.clear();
    this.#hasChanged = false;
  }

  #forgetOld(now: number): void {
    for (const [id, object] of this.#objects) {
      if (now - object.lastMs <= MAX_INTERVAL_MS) continue;
      this.#objects.delete(id);
      this.#forgetNames(object);
    }
  }

  #forgetNames({ resource, namespace, names }: RecreatedObject): void {
    for (const name of names) this.#byName.delete(idOf(resource, objectKey(namespace, name)));
  }
}

/** Returns which fields of an object that is created again differ, and why. */
function changeOf(
  known: RecreatedObject,
  { sent, answer }: Creation,
  isGivenUp: boolean,
): Required<Pick<HotLoop, 'paths' | 'changedBy'>> {
  if (!isGivenUp) return { paths: [], changedBy: 'deletion' };
  const admitted = changedAsSent(sent, sent, answer);
  if (admitted.length > 0) return { paths: admitted, changedBy: 'admission' };
  if (known.isChanged) return { paths: known.paths, changedBy: 'others' };
  const desired = changedPaths(known.sent, sent, MAX_PATHS);
  if (desired.length > 0) return { paths: desired, changedBy: 'key' };
  return { paths: [], changedBy: 'nothing' };
}

/** Returns whether the object is deleted, or its deletion has just started. */
function isDeletion(before: DeepReadonly<KubernetesObject>, after: Observed): boolean {
  if (!after) return true;
  const isDeleting = after.metadata.deletionTimestamp !== undefined;
  return isDeleting && before.metadata.deletionTimestamp === undefined;
}

/** Records that another client deleted one of the objects, if it did so soon after the last creation. */
function noteDeletion({ vanished, lastMs }: RecreatedObject, uid: string, now: number): void {
  if (now - lastMs > SHORT_LIFE_MS) return;
  vanished.add(uid);
  const [oldest] = vanished;
  if (oldest !== undefined && vanished.size > 2 * MAX_NAMES) vanished.delete(oldest);
}

/** Records which fields that the key has sent another client changed. */
function noteChange(object: RecreatedObject, before: object, after: object): void {
  const paths = changedAsSent(object.sent, before, after);
  if (paths.length === 0) return;
  object.isChanged = true;
  if (object.changedBy === 'admission') return;
  object.paths = paths;
  object.changedBy = 'others';
}

/** Returns some of the fields of `sent` that differ between `before` and `after`. */
function changedAsSent(sent: unknown, before: unknown, after: unknown): FieldPath[] {
  return changedPaths(before, after, MAX_COMPARED)
    .filter((path) => valueAt(sent, path) !== undefined)
    .slice(0, MAX_PATHS);
}

/** Returns whether the object has the controller owner with which it was sent. */
function isOwnedAsSent(sent: unknown, answer: KubernetesObject): boolean {
  const references = valueAt(sent, ['metadata', 'ownerReferences']);
  if (!Array.isArray(references)) return true;
  const owner = controllerOf({ metadata: { ownerReferences: references as OwnerReference[] } });
  return owner === undefined || controllerOf(answer)?.uid === owner.uid;
}

/** Returns whether a change can be a reason for another desired state: not one of the status alone. */
function isInput(before: Observed, after: Observed): boolean {
  if (!before || !after) return true;
  return changedPaths(before, after, MAX_COMPARED).some(
    ([member, field]) => member !== 'status' && (member !== 'metadata' || field === 'labels'),
  );
}

function idOf(resource: Resource, at: string): string {
  return `${groupResourceOf(resource)} ${at}`;
}
