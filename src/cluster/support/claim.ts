import { isApiError } from '../../api/api-error.ts';
import { matchesLabels, requirementsOf, selects } from '../../api/label-selector.ts';
import { controllerOf, controllerReference } from '../../api/metadata.ts';
import { keyOf } from '../../api/object-key.ts';
import type { DeepReadonly, KubernetesObject } from '../../api/object.ts';
import type { Resource } from '../../api/resource.ts';
import type { IndexFunctions } from '../../cache/indexer.ts';
import type { SharedInformer } from '../../cache/shared-informer.ts';
import { isReplaced } from '../../manager/owned-object.ts';
import type { OwnedObjectContext } from '../../manager/owned-object.ts';
import { mapToOwner, ownerIndexers, OWNER_INDEX } from '../../manager/enqueue.ts';
import type { MapFunction } from '../../manager/enqueue.ts';
import type { ClusterDeps } from './resource-monitors.ts';
import { Rejections } from '../../manager/rejections.ts';

const ORPHAN_INDEX = 'orphansOfNamespace';

/** Indexes of objects by the uid of their controller owner, and of those without one by namespace. */
const claimIndexers: IndexFunctions<KubernetesObject> = {
  ...ownerIndexers,
  [ORPHAN_INDEX]: (object) => (controllerOf(object) ? [] : [object.metadata.namespace ?? '']),
};

/** Returns the shared informer of an owned kind, with `claimIndexers`. */
export function claimable<T extends KubernetesObject>(
  { informers }: Pick<ClusterDeps, 'informers'>,
  resource: Resource<T>,
): SharedInformer<T> {
  const informer = informers.for(resource);
  if (!informer.lister.hasIndex(ORPHAN_INDEX)) informer.addIndexers(claimIndexers);
  return informer;
}

/** Owner of objects that its selector matches, such as a ReplicaSet. */
type Selecting = KubernetesObject & { spec?: { selector?: object | undefined } | undefined };

export interface ClaimOptions<T extends KubernetesObject> {
  readonly owner: DeepReadonly<Selecting>;
  readonly ownerResource: Resource;
  /** Informer of the owned kind, from `claimable`. */
  readonly owned: SharedInformer<T>;
  /**
   * Objects that are not adopted or released.
   * @default none
   */
  readonly ignore?: (object: DeepReadonly<T>) => boolean;
  /**
   * Finalizer of the owner, which released objects lose.
   * @default none
   */
  readonly finalizer?: string;
}

/**
 * Returns the objects that `owner` controls. Adopts objects without a controller that its selector
 * matches, and releases owned objects that it no longer matches, as kube-controller-manager does.
 */
export async function claim<T extends KubernetesObject>(
  context: OwnedObjectContext,
  { owner, ownerResource, owned: { lister, resource }, ignore, finalizer }: ClaimOptions<T>,
): Promise<DeepReadonly<T>[]> {
  const { uid, namespace = '', deletionTimestamp } = owner.metadata;
  const selector = requirementsOf(owner.spec?.selector);
  const owned = lister.byIndex(OWNER_INDEX, uid).filter((object) => !ignore?.(object));
  if (!selector || deletionTimestamp !== undefined) return owned;
  const isSelected = ({ metadata }: DeepReadonly<T>) => matchesLabels(selector, metadata.labels);
  const rejections = new Rejections();
  for (const object of owned) {
    if (isSelected(object)) continue;
    await rejections.catch(object, () =>
      patchMetadata(context, resource, object, {
        ownerReferences: [{ $patch: 'delete', uid }],
        ...(finalizer !== undefined && { '$deleteFromPrimitiveList/finalizers': [finalizer] }),
      }),
    );
  }
  const orphans = lister.byIndex(ORPHAN_INDEX, namespace).filter(isSelected);
  const adoptable = orphans.filter(
    (object) => object.metadata.deletionTimestamp === undefined && !ignore?.(object),
  );
  const adopted: DeepReadonly<T>[] = [];
  if (adoptable.length > 0 && (await mayAdopt(context, ownerResource, owner))) {
    const ownerReferences = [controllerReference(owner)];
    for (const object of adoptable) {
      const adopt = () => patchMetadata(context, resource, object, { ownerReferences });
      if (await rejections.catch(object, adopt)) adopted.push(object);
    }
  }
  rejections.throw();
  return [...owned.filter(isSelected), ...adopted];
}

/**
 * Maps an object to its controller owner; an object without one to the owners that select it.
 *
 * @param owners informer of the owners
 */
export function mapToClaimants(owners: SharedInformer<Selecting>): MapFunction {
  const toOwner = mapToOwner(owners.resource);
  return (object) => {
    if (controllerOf(object)) return toOwner(object);
    const { namespace, labels } = object.metadata;
    if (!labels) return undefined;
    return owners.lister
      .list({ namespace })
      .filter(({ spec }) => selects(spec?.selector, labels))
      .map(keyOf);
  };
}

/** Reads the owner from the server: the garbage collector would delete what a deleted owner adopts. */
async function mayAdopt(
  { client, signal }: OwnedObjectContext,
  resource: Resource,
  { metadata }: DeepReadonly<KubernetesObject>,
): Promise<boolean> {
  try {
    const live = await client.get(resource, metadata, { signal });
    return live.metadata.uid === metadata.uid && live.metadata.deletionTimestamp === undefined;
  } catch (error) {
    if (isApiError(error, 'notFound')) return false;
    throw error;
  }
}

/**
 * Changes the metadata of an object. Returns false if it was deleted or replaced.
 *
 * @throws {ApiError} `conflict` if it was changed meanwhile: the owner must not create a second object
 */
async function patchMetadata(
  { client, signal }: OwnedObjectContext,
  resource: Resource,
  { metadata }: DeepReadonly<KubernetesObject>,
  changes: object,
): Promise<boolean> {
  const { uid, resourceVersion } = metadata;
  const body = { metadata: { uid, resourceVersion, ...changes } };
  try {
    await client.patch(resource, metadata, { type: 'strategic', body }, { signal });
    return true;
  } catch (error) {
    if (isReplaced(error)) return false;
    throw error;
  }
}
