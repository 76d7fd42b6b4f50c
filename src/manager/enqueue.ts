import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import { keyOf, objectKey } from '../api/object-key.ts';
import type { ObjectKey } from '../api/object-key.ts';
import { controllerOf } from '../api/owner-reference.ts';
import type { Resource } from '../api/resource.ts';
import type { IndexFunctions } from '../cache/indexer.ts';
import type { InformerHandler } from '../cache/handler.ts';
import { LOW_PRIORITY } from '../workqueue/work-queue.ts';

/** As much of a work queue as an event handler needs. */
export interface KeySink {
  add(key: ObjectKey, options?: { readonly priority?: number; readonly cause?: string }): void;
}

/** Which keys an object concerns. */
export type ToKeys<T extends KubernetesObject> = (
  object: DeepReadonly<T>,
) => readonly ObjectKey[] | ObjectKey | undefined;

/**
 * The event handler that turns objects into keys. Keys of the first list and of resyncs yield to
 * those of fresh changes, so that a restart does not delay what users are doing now. An update
 * counts for the old state and the new: a child that changes hands wakes both owners, and so does
 * any other object that ceases to concern a key.
 */
export function enqueue<T extends KubernetesObject>(
  resource: Resource<T>,
  queue: KeySink,
  toKeys: ToKeys<T>,
): InformerHandler<T> {
  const keysOf = (object: DeepReadonly<T>): readonly ObjectKey[] => {
    const keys = toKeys(object) ?? [];
    return typeof keys === 'string' ? [keys] : keys;
  };
  const addAll = (
    keys: readonly ObjectKey[],
    object: DeepReadonly<T>,
    event: string,
    priority?: number,
  ) => {
    for (const key of keys) {
      const cause = `${resource.kind} ${keyOf(object)} ${event}`;
      queue.add(key, priority === undefined ? { cause } : { cause, priority });
    }
  };
  const add = (object: DeepReadonly<T>, event: string, priority?: number) =>
    addAll(keysOf(object), object, event, priority);
  return {
    onAdd: (object, isInInitialList) =>
      isInInitialList ? add(object, 'listed', LOW_PRIORITY) : add(object, 'added'),
    onUpdate: (old, object) => {
      if (old.metadata.resourceVersion === object.metadata.resourceVersion) {
        add(object, 'resynced', LOW_PRIORITY);
      } else {
        const keys = keysOf(object);
        const left = keysOf(old).filter((key) => !keys.includes(key));
        addAll(left, old, 'left');
        addAll(keys, object, 'changed');
      }
    },
    onDelete: (lastKnown) => add(lastKnown, 'deleted'),
  };
}

/** An object concerns itself. */
export function toItself(object: DeepReadonly<KubernetesObject>): ObjectKey {
  return keyOf(object);
}

/** A child concerns its controller, if that is of `owner`'s kind. The version may differ. */
export function toController(owner: Resource): ToKeys<KubernetesObject> {
  return (object) => {
    const reference = controllerOf(object);
    if (!reference || reference.kind !== owner.kind) return undefined;
    const group = reference.apiVersion.includes('/') ? reference.apiVersion.split('/')[0] : '';
    if (group !== owner.group) return undefined;
    return objectKey(owner.namespaced ? object.metadata.namespace : undefined, reference.name);
  };
}

/** Name of the index that finds children by the uid of their controller. */
export const CONTROLLER_INDEX = 'controllerUid';

/** The index itself, to be added to an informer of children. */
export const byController: IndexFunctions<KubernetesObject> = {
  [CONTROLLER_INDEX]: (object) => {
    const uid = controllerOf(object)?.uid;
    return uid === undefined ? [] : [uid];
  },
};
