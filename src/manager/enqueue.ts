import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import { keyOf, objectKey } from '../api/object-key.ts';
import type { ObjectKey } from '../api/object-key.ts';
import { controllerOf } from '../api/metadata.ts';
import type { Resource } from '../api/resource.ts';
import type { IndexFunctions } from '../cache/indexer.ts';
import type { EventHandler } from '../cache/event-handler.ts';
import { LOW_PRIORITY } from '../workqueue/work-queue.ts';
import { changedPaths, formatPath } from './changed-paths.ts';

/** As much of a work queue as an event handler needs. */
export interface KeySink {
  add(key: ObjectKey, options?: { readonly priority?: number; readonly cause?: string }): void;
}

/** Which keys an object concerns. */
export type ToKeys<T extends KubernetesObject> = (
  object: DeepReadonly<T>,
) => readonly ObjectKey[] | ObjectKey | undefined;

export interface EnqueueOptions {
  /**
   * Whether anybody reads causes closely right now: then they tell which fields an update changed,
   * and what is a child.
   * @default never
   */
  readonly detailed?: (() => boolean) | undefined;
  /** Whether what `key` names controls the object. */
  readonly isChild?: ((key: ObjectKey, object: Concerned) => boolean) | undefined;
  /**
   * Told of each change that concerns a key, before the key is added. What an object has come to, or
   * what it was, is absent where it does not concern the key; resyncs are no changes.
   */
  readonly onChange?:
    | ((key: ObjectKey, before: Concerned | undefined, after: Concerned | undefined) => void)
    | undefined;
}

type Concerned = DeepReadonly<KubernetesObject>;

/** So many changed fields are told apart in a cause, and so many characters of them shown. */
const MOST_FIELDS = 5;
const LONGEST_FIELDS = 300;

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
  {
    detailed = () => false,
    isChild = () => false,
    onChange = () => undefined,
  }: EnqueueOptions = {},
): EventHandler<T> {
  const keysOf = (object: DeepReadonly<T>) => allKeys(toKeys, object);
  const addAll = (
    keys: readonly ObjectKey[],
    object: DeepReadonly<T>,
    event: string,
    priority?: number,
  ) => {
    if (keys.length === 0) return;
    const what = `${resource.kind} ${keyOf(object)} ${event}`;
    const isDetailed = detailed();
    for (const key of keys) {
      const cause = isDetailed && isChild(key, object) ? `child ${what}` : what;
      queue.add(key, priority === undefined ? { cause } : { cause, priority });
    }
  };
  const tell = (
    keys: readonly ObjectKey[],
    before: Concerned | undefined,
    after: Concerned | undefined,
  ) => {
    for (const key of keys) onChange(key, before, after);
  };
  return {
    onAdd: (object, isInInitialList) => {
      const keys = keysOf(object);
      tell(keys, undefined, object);
      if (isInInitialList) addAll(keys, object, 'listed', LOW_PRIORITY);
      else addAll(keys, object, 'added');
    },
    onUpdate: (old, object) => {
      const keys = keysOf(object);
      if (old.metadata.resourceVersion === object.metadata.resourceVersion) {
        addAll(keys, object, 'resynced', LOW_PRIORITY);
        return;
      }
      const left = keysOf(old).filter((key) => !keys.includes(key));
      tell(left, old, undefined);
      addAll(left, old, 'left');
      tell(keys, old, object);
      addAll(keys, object, keys.length > 0 && detailed() ? changeOf(old, object) : 'changed');
    },
    onDelete: (lastKnown) => {
      const keys = keysOf(lastKnown);
      tell(keys, lastKnown, undefined);
      addAll(keys, lastKnown, 'deleted');
    },
  };
}

/** `changed: .status.phase, .metadata.labels.app` */
function changeOf(old: Concerned, object: Concerned): string {
  if (old.metadata.uid !== object.metadata.uid) return 'replaced by another of its name';
  const paths = changedPaths(old, object, MOST_FIELDS + 1);
  if (paths.length === 0) return 'changed: nothing but who wrote it';
  const named = paths.slice(0, MOST_FIELDS).map(formatPath).join(', ');
  if (named.length > LONGEST_FIELDS) return `changed: ${named.slice(0, LONGEST_FIELDS)}…`;
  return `changed: ${named}${paths.length > MOST_FIELDS ? ', …' : ''}`;
}

/** The keys that `object` concerns, as a list. */
export function allKeys<T extends KubernetesObject>(
  toKeys: ToKeys<T>,
  object: DeepReadonly<T>,
): readonly ObjectKey[] {
  const keys = toKeys(object) ?? [];
  return typeof keys === 'string' ? [keys] : keys;
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
