import type { DeepReadonly, KubernetesObject, ObjectMeta, OwnerReference } from './object.ts';

type Owned = DeepReadonly<{ metadata: Pick<ObjectMeta, 'ownerReferences'> }>;

/** The reference that makes `owner` the controller of a child: one per child, and it blocks. */
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

/** The reference to the object's controller, if it has one. */
export function controllerOf(object: Owned): DeepReadonly<OwnerReference> | undefined {
  return object.metadata.ownerReferences?.find((reference) => reference.controller === true);
}

/** Ownership is by uid: an owner of the same name that came later owns nothing of its forerunner. */
export function isControlledBy(object: Owned, owner: DeepReadonly<KubernetesObject>): boolean {
  return controllerOf(object)?.uid === owner.metadata.uid;
}

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
