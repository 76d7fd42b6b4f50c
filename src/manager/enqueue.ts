import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import { keyOf, objectKey } from '../api/object-key.ts';
import type { ObjectKey, ObjectName } from '../api/object-key.ts';
import { controllerOf } from '../api/metadata.ts';
import { apiGroupOf } from '../api/resource.ts';
import type { Resource } from '../api/resource.ts';
import type { EventHandler } from '../cache/event-handler.ts';
import type { IndexFunctions } from '../cache/indexer.ts';
import type { SharedInformer } from '../cache/shared-informer.ts';
import { LOW_PRIORITY } from '../workqueue/work-queue.ts';
import type { FieldChange } from '../workqueue/queue-item.ts';
import { updateOf } from './field-changes.ts';
import type { Predicate } from './predicate.ts';
import { predicates } from './predicate.ts';

/** The part of a work queue that event handlers use. */
export interface KeySink {
  /** Adds a key to the queue. */
  add(
    key: ObjectKey,
    options?: {
      readonly priority?: number;
      readonly cause?: string;
      readonly changes?: readonly FieldChange[];
    },
  ): void;
}

/** Maps an object to the keys that its changes enqueue, as controller-runtime's `handler.MapFunc`. */
export type MapFunction<T extends KubernetesObject = KubernetesObject> = (
  object: DeepReadonly<T>,
) => readonly ObjectKey[] | ObjectKey | undefined;

/** Options of `enqueue`. */
export interface EnqueueOptions<T extends KubernetesObject> {
  /**
   * Events that a predicate rejects enqueue nothing; all predicates must accept an event.
   * @default all events are accepted
   */
  readonly predicates?: readonly Predicate<T>[] | undefined;
  /**
   * Whether causes name the changed fields of an update, and say which objects are owned.
   * @default never
   */
  readonly detailed?: (() => boolean) | undefined;
  /**
   * Whether the object that `key` names is the controller owner of `object`.
   * @default never
   */
  readonly isOwned?: ((key: ObjectKey, object: DeepReadonly<T>) => boolean) | undefined;
  /**
   * Called for each accepted change that maps to a key, before the key is enqueued. `before` or
   * `after` is absent if that state does not map to the key. Not called at resyncs.
   */
  readonly onChange?:
    | ((
        key: ObjectKey,
        before: DeepReadonly<T> | undefined,
        after: DeepReadonly<T> | undefined,
      ) => void)
    | undefined;
}

/**
 * Returns the event handler that enqueues the keys of objects. Keys of the first list and of resyncs
 * have a low priority, so that a restart does not delay fresh changes. An update enqueues the keys of
 * the old and the new state: an owned object whose owner changes enqueues both owners.
 */
export function enqueue<T extends KubernetesObject>(
  resource: Resource<T>,
  queue: KeySink,
  map: MapFunction<T>,
  {
    predicates: members = [],
    detailed = () => false,
    isOwned = () => false,
    onChange = () => undefined,
  }: EnqueueOptions<T> = {},
): EventHandler<T> {
  const predicate = predicates.and(...members);
  const keysOf = (object: DeepReadonly<T>) => allKeys(map, object);
  const addAll = (
    keys: readonly ObjectKey[],
    object: DeepReadonly<T>,
    event: string,
    options: { readonly priority?: number; readonly changes?: readonly FieldChange[] } = {},
  ) => {
    if (keys.length === 0) return;
    const text = `${resource.kind} ${keyOf(object)} ${event}`;
    const isDetailed = detailed();
    for (const key of keys) {
      const cause = isDetailed && isOwned(key, object) ? `owned ${text}` : text;
      queue.add(key, { cause, ...options });
    }
  };
  const report = (
    keys: readonly ObjectKey[],
    before: DeepReadonly<T> | undefined,
    after: DeepReadonly<T> | undefined,
  ) => {
    for (const key of keys) onChange(key, before, after);
  };
  return {
    onAdd: (object, isInInitialList) => {
      if (!predicate.create(object, isInInitialList)) return;
      const keys = keysOf(object);
      report(keys, undefined, object);
      if (isInInitialList) addAll(keys, object, 'listed', { priority: LOW_PRIORITY });
      else addAll(keys, object, 'added');
    },
    onUpdate: (old, object) => {
      const isAccepted = isReplaced(old, object)
        ? predicate.delete(old) || predicate.create(object, false)
        : predicate.update(old, object);
      if (!isAccepted) return;
      const keys = keysOf(object);
      if (old === object) {
        addAll(keys, object, 'resynced', { priority: LOW_PRIORITY });
        return;
      }
      const left = keysOf(old).filter((key) => !keys.includes(key));
      report(left, old, undefined);
      addAll(left, old, 'left');
      report(keys, old, object);
      if (keys.length === 0 || !detailed()) {
        addAll(keys, object, 'changed');
        return;
      }
      const { text, changes } = updateOf(old, object);
      addAll(keys, object, text, changes && { changes });
    },
    onDelete: (lastKnown) => {
      if (!predicate.delete(lastKnown)) return;
      const keys = keysOf(lastKnown);
      report(keys, lastKnown, undefined);
      addAll(keys, lastKnown, 'deleted');
    },
  };
}

/**
 * Reports whether `object` is no later state of `old`: a relist reports a deletion and a creation under the same
 * name as one update, and a restored server uses a resourceVersion for two states.
 */
function isReplaced(
  { metadata: old }: DeepReadonly<KubernetesObject>,
  { metadata }: DeepReadonly<KubernetesObject>,
): boolean {
  if (old.uid !== metadata.uid) return true;
  return old !== metadata && old.resourceVersion === metadata.resourceVersion;
}

/** Returns the keys that `map` has for `object`, as a list. */
export function allKeys<T extends KubernetesObject>(
  map: MapFunction<T>,
  object: DeepReadonly<T>,
): readonly ObjectKey[] {
  const keys = map(object) ?? [];
  return typeof keys === 'string' ? [keys] : keys;
}

/**
 * Returns the function that maps an object to its controller owner, if that has the kind and group of
 * `owner`; the version may differ. As controller-runtime's `handler.EnqueueRequestForOwner`.
 */
export function mapToOwner(
  owner: Resource,
): (object: DeepReadonly<KubernetesObject>) => ObjectKey | undefined {
  return (object) => {
    const reference = controllerOf(object);
    if (!reference || reference.kind !== owner.kind) return undefined;
    if (apiGroupOf(reference.apiVersion) !== owner.group) return undefined;
    const { namespace } = object.metadata;
    // A cluster-scoped object cannot have an owner in a namespace: the garbage collector ignores such a reference.
    if (owner.namespaced && namespace === undefined) return undefined;
    return objectKey(owner.namespaced ? namespace : undefined, reference.name);
  };
}

/**
 * Returns the function that maps an object to the objects of `informer` that refer to it by name. A name stands for a
 * cluster-scoped object, and for an object in the namespace of the one that refers to it. For `watches(configMaps, map)`, if the
 * spec names a ConfigMap, and for `owns(informer, kind, { orNamed: map })`, if the spec names the owned object. Adds an index to
 * `informer`.
 *
 * @param index name of the index, unique in the informer
 * @param nameIn returns the name that an object of `informer` refers to, with a namespace if that is another one; or undefined
 */
export function mapByName<T extends KubernetesObject>(
  informer: SharedInformer<T>,
  index: string,
  nameIn: (object: DeepReadonly<T>) => string | ObjectName | undefined,
): MapFunction {
  informer.addIndexers({
    [index]: (object: DeepReadonly<T>) => {
      const name = nameIn(object);
      if (name === undefined) return [];
      if (typeof name !== 'string') return [keyOf({ metadata: name })];
      const { namespace } = object.metadata;
      return [...new Set([objectKey(namespace, name), objectKey(undefined, name)])];
    },
  });
  return (object) => informer.lister.indexKeys(index, keyOf(object));
}

/** Name of the index of {@link ownerIndexers}. */
export const OWNER_INDEX = 'ownerUid';

/**
 * The index of objects by the uid of their controller owner: `lister.byIndex(OWNER_INDEX, uid)`. Add
 * it to the informer of the owned kind.
 */
export const ownerIndexers: IndexFunctions<KubernetesObject> = {
  [OWNER_INDEX]: (object) => {
    const uid = controllerOf(object)?.uid;
    return uid === undefined ? [] : [uid];
  },
};
