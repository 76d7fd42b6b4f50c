import { changedPaths, valueAt } from '../../api/field-path.ts';
import type { FieldPath } from '../../api/field-path.ts';
import { equalJson } from '../../api/equal.ts';
import { objectKey } from '../../api/object-key.ts';
import type { ObjectKey } from '../../api/object-key.ts';
import type { KubernetesObject } from '../../api/object.ts';
import { groupResourceOf } from '../../api/resource.ts';
import type { Resource } from '../../api/resource.ts';
import { MAX_INTERVAL_MS } from './written-object.ts';
import type { HotLoop } from './written-object.ts';

/** Number of times that a key deletes an object of its own and creates it again that makes a hot loop. */
export const RECREATE_LIMIT = 5;

const MAX_OBJECTS = 256;
const MAX_PATHS = 3;
/** Number of different fields that are looked at, most of which are defaults of the server. */
const MAX_COMPARED = 256;

/** An object that a key creates again after it has deleted it: one name, or the names with one prefix. */
interface RecreatedObject {
  readonly resource: Resource;
  readonly namespace: string | undefined;
  /** Name of the last object. */
  name: string;
  /** The object as it was sent. */
  sent: unknown;
  fieldManager: string | undefined;
  /** Fields that the server changed when it created the last object. */
  paths: readonly FieldPath[];
  isDeleted: boolean;
  times: number;
  sinceMs: number;
  lastMs: number;
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
 * The objects that one key deletes and creates again, always as before. That happens if a controller deletes what
 * differs from the desired state, and admission changes each new object. Objects with generated names count only if
 * the server changed a field of them.
 */
export class RecreatedObjects {
  readonly #objects = new Map<string, RecreatedObject>();
  /** The objects by the key of the last one. */
  readonly #byName = new Map<string, RecreatedObject>();
  #hasChanged = false;

  /** @param maxIntervalMs longest time between two creations of an object that recreates it */
  created(creation: Creation, now: number, maxIntervalMs: number = MAX_INTERVAL_MS): void {
    const { resource, at, sent, answer, fieldManager } = creation;
    const { namespace, name } = answer.metadata;
    const id = idOf(resource, at);
    const known = this.#objects.get(id);
    if (!known && this.#objects.size >= MAX_OBJECTS) this.#forgetOld(now);
    if (!known && this.#objects.size >= MAX_OBJECTS) return;
    const isAgain =
      known?.isDeleted === true &&
      now - known.lastMs <= maxIntervalMs &&
      equalJson(known.sent, sent);
    // The first creation of an object, which is the usual one, compares nothing.
    const paths = isAgain ? changedByServer(sent, answer) : [];
    const counts = isAgain && (!at.endsWith('*') || paths.length > 0);
    const object: RecreatedObject = {
      resource,
      namespace,
      name,
      sent,
      fieldManager,
      paths,
      isDeleted: false,
      times: counts ? known.times + 1 : 0,
      sinceMs: counts ? known.sinceMs : now,
      lastMs: now,
    };
    if (counts) this.#hasChanged = true;
    if (known) this.#byName.delete(idOf(resource, objectKey(known.namespace, known.name)));
    this.#objects.set(id, object);
    this.#byName.set(idOf(resource, objectKey(namespace, name)), object);
  }

  /** @param at key of the object that was deleted */
  deleted(resource: Resource, at: string): void {
    const object = this.#byName.get(idOf(resource, at));
    if (object) object.isDeleted = true;
  }

  /** Returns whether an object was created again since the last call. */
  takeChange(): boolean {
    const hasChanged = this.#hasChanged;
    this.#hasChanged = false;
    return hasChanged;
  }

  /** Returns the hot loop of `key`, or undefined. */
  findLoop(key: ObjectKey): HotLoop | undefined {
    for (const object of this.#objects.values()) {
      const { resource, namespace, name, fieldManager, paths, times, sinceMs, lastMs } = object;
      if (times < RECREATE_LIMIT) continue;
      const withinMs = lastMs - sinceMs;
      const base = { key, resource, namespace, name, fieldManager };
      return { ...base, kind: 'recreated', paths, times, withinMs };
    }
    return undefined;
  }

  /** Resets the counts after the end of a loop. */
  reset(): void {
    this.#objects.clear();
    this.#byName.clear();
    this.#hasChanged = false;
  }

  #forgetOld(now: number): void {
    for (const [id, { resource, namespace, name, lastMs }] of this.#objects) {
      if (now - lastMs <= MAX_INTERVAL_MS) continue;
      this.#objects.delete(id);
      this.#byName.delete(idOf(resource, objectKey(namespace, name)));
    }
  }
}

/** Returns some of the fields that the server changed or dropped. */
function changedByServer(sent: unknown, answer: KubernetesObject): FieldPath[] {
  return changedPaths(sent, answer, MAX_COMPARED)
    .filter((path) => valueAt(sent, path) !== undefined)
    .slice(0, MAX_PATHS);
}

function idOf(resource: Resource, at: string): string {
  return `${groupResourceOf(resource)} ${at}`;
}
