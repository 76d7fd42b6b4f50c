import { equalJson } from '../api/equal.ts';
import type { DeepReadonly, KubernetesObject } from '../api/object.ts';

/**
 * Decides which events of an informer enqueue keys, as controller-runtime's `predicate.Predicate`.
 * A method that is absent accepts every event of its type. Methods are synchronous and must not
 * change the objects.
 */
export interface Predicate<T extends KubernetesObject = KubernetesObject> {
  /** Called for each object of the first list (`isInInitialList`) and each object created later. */
  readonly create?: (object: DeepReadonly<T>, isInInitialList: boolean) => boolean;
  /** Called for each change, and for each cached object at a resync: `old` and `object` are equal then. */
  readonly update?: (old: DeepReadonly<T>, object: DeepReadonly<T>) => boolean;
  /** Called with the last known state of a deleted object. */
  readonly delete?: (object: DeepReadonly<T>) => boolean;
}

/**
 * Ready-made predicates, named after controller-runtime's. Those that compare two states accept all
 * creations and deletions, and no resync.
 */
export const predicates = {
  /**
   * Accepts updates that change `metadata.generation`: of the spec, and the start of a deletion. Use
   * it with `for` if the sync does not depend on status, labels and annotations.
   */
  generationChanged: onUpdate(({ metadata }) => metadata.generation),
  /** Accepts updates that change `metadata.labels`. */
  labelsChanged: onUpdate(({ metadata }) => metadata.labels ?? {}),
  /** Accepts updates that change `metadata.annotations`. */
  annotationsChanged: onUpdate(({ metadata }) => metadata.annotations ?? {}),
  /** Accepts updates that change `metadata.resourceVersion`: all but resyncs. */
  resourceVersionChanged: onUpdate(({ metadata }) => metadata.resourceVersion),

  /**
   * Accepts updates that change the value that `valueOf` returns: `predicates.changed(({ spec }) => spec)`.
   * Values are compared as JSON.
   */
  changed: onUpdate,

  /** Accepts the events that all `members` accept. */
  and<T extends KubernetesObject>(...members: readonly Predicate<T>[]): Required<Predicate<T>> {
    return combined('every', members);
  },

  /** Accepts the events that one of `members` accepts. */
  or<T extends KubernetesObject>(...members: readonly Predicate<T>[]): Required<Predicate<T>> {
    return combined('some', members);
  },

  /** Accepts the events that `member` rejects. An absent method accepts, so its negation rejects. */
  not<T extends KubernetesObject>(member: Predicate<T>): Required<Predicate<T>> {
    const negated = complete(member);
    return {
      create: (object, isInInitialList) => !negated.create(object, isInInitialList),
      update: (old, object) => !negated.update(old, object),
      delete: (object) => !negated.delete(object),
    };
  },
};

function onUpdate<T extends KubernetesObject>(
  valueOf: (object: DeepReadonly<T>) => unknown,
): Predicate<T> {
  return { update: (old, object) => !equalJson(valueOf(old), valueOf(object)) };
}

function combined<T extends KubernetesObject>(
  method: 'every' | 'some',
  members: readonly Predicate<T>[],
): Required<Predicate<T>> {
  const all = members.map(complete);
  return {
    create: (object, isInInitialList) =>
      all[method](({ create }) => create(object, isInInitialList)),
    update: (old, object) => all[method](({ update }) => update(old, object)),
    delete: (object) => all[method](({ delete: accepts }) => accepts(object)),
  };
}

function complete<T extends KubernetesObject>(predicate: Predicate<T>): Required<Predicate<T>> {
  return { create: () => true, update: () => true, delete: () => true, ...predicate };
}
