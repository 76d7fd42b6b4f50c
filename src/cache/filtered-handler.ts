import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import type { InformerHandler } from './handler.ts';

/**
 * `handler`, told only of objects that pass. An object that begins to pass is added and one that
 * ceases to is deleted, in the last state that passed; what is between two states that both pass is
 * an update, also when they are of two objects of one name.
 *
 * A filter that throws, or answers with anything but a boolean, fails the call as the handler would:
 * a promise is true to an `if`.
 */
export function filtered<T extends KubernetesObject>(
  handler: InformerHandler<T>,
  filter: (object: DeepReadonly<T>) => boolean,
): InformerHandler<T> {
  const passes = (object: DeepReadonly<T>): boolean => {
    const verdict: unknown = filter(object);
    if (typeof verdict === 'boolean') return verdict;
    if (verdict instanceof Promise) verdict.catch(() => undefined);
    const found = verdict instanceof Promise ? 'a promise' : typeof verdict;
    throw new TypeError(`The filter of a handler returned ${found}; expected true or false`);
  };
  return {
    onAdd: (object, isInInitialList) =>
      passes(object) ? handler.onAdd?.(object, isInInitialList) : undefined,
    onUpdate: (old, object) => {
      const before = passes(old);
      const after = passes(object);
      if (before && after) return handler.onUpdate?.(old, object);
      if (after) return handler.onAdd?.(object, false);
      if (before) return handler.onDelete?.(old, true);
      return undefined;
    },
    onDelete: (lastKnown, finalStateKnown) => {
      return passes(lastKnown) ? handler.onDelete?.(lastKnown, finalStateKnown) : undefined;
    },
  };
}
