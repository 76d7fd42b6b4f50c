import type { DeepReadonly, KubernetesObject, ObjectMeta, OwnerReference } from './object.ts';

type Owned = DeepReadonly<{ metadata: Pick<ObjectMeta, 'ownerReferences'> }>;

/** Returns a reference to `owner` as controller, with `blockOwnerDeletion`. An object has at most one controller owner. */
export function controllerReference(owner: DeepReadonly<KubernetesObject>): OwnerReference {
  return {
    apiVersion: owner.apiVersion,
    kind: owner.kind,
    name: owner.metadata.name,
    uid: owner.metadata.uid,
    controller: true,
    blockOwnerDeletion: true,
  };
}

/** Returns the reference to the object's controller owner, or undefined. */
export function controllerOf(object: Owned): DeepReadonly<OwnerReference> | undefined {
  return object.metadata.ownerReferences?.find((reference) => reference.controller === true);
}

/** Reports whether `owner` is the controller owner of `object`. Compares uids: names can be reused. */
export function isControlledBy(object: Owned, owner: DeepReadonly<KubernetesObject>): boolean {
  return controllerOf(object)?.uid === owner.metadata.uid;
}

type Finalizable = DeepReadonly<{ metadata: Pick<ObjectMeta, 'finalizers'> }>;

/** Returns whether the object has the finalizer. */
export function hasFinalizer(object: Finalizable, finalizer: string): boolean {
  return object.metadata.finalizers?.includes(finalizer) ?? false;
}

/**
 * Returns the object's finalizers with `finalizer`.
 *
 * @example
 * ```ts
 * import { hasFinalizer, withFinalizer } from 'crd-controller';
 *
 * const finalizers = withFinalizer({ metadata: {} }, 'example.com/cleanup');
 * console.log(hasFinalizer({ metadata: { finalizers } }, 'example.com/cleanup')); // prints: true
 * ```
 */
export function withFinalizer(object: Finalizable, finalizer: string): string[] {
  return [...withoutFinalizer(object, finalizer), finalizer];
}

/** Returns the object's finalizers without `finalizer`. */
export function withoutFinalizer(object: Finalizable, finalizer: string): string[] {
  return (object.metadata.finalizers ?? []).filter((present) => present !== finalizer);
}
