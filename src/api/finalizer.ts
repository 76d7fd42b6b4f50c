import type { DeepReadonly, ObjectMeta } from './object.ts';

type Finalizable = DeepReadonly<{ metadata: Pick<ObjectMeta, 'finalizers'> }>;

export function hasFinalizer(object: Finalizable, finalizer: string): boolean {
  return object.metadata.finalizers?.includes(finalizer) ?? false;
}

/** The object's finalizers and `finalizer`, once. */
export function withFinalizer(object: Finalizable, finalizer: string): string[] {
  return [...withoutFinalizer(object, finalizer), finalizer];
}

/** The object's finalizers but `finalizer`. */
export function withoutFinalizer(object: Finalizable, finalizer: string): string[] {
  return (object.metadata.finalizers ?? []).filter((present) => present !== finalizer);
}
