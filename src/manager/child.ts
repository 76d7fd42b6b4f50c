import { ApiError, isApiError } from '../api/api-error.ts';
import { covers } from '../api/equal.ts';
import type { DeepReadonly, Draft, KubernetesObject } from '../api/object.ts';
import { controllerOf, isControlledBy } from '../api/metadata.ts';
import type { Resource } from '../api/resource.ts';
import type { Client } from '../client/client.ts';
import { takeOver } from './hot-loop/field-ownership.ts';

/** What an owner wants of one child. */
export interface ChildWish<T extends KubernetesObject> {
  readonly resource: Resource<T>;
  readonly owner: DeepReadonly<KubernetesObject>;
  /** Complete, with the controller reference to `owner`. */
  readonly desired: Draft<T> & { metadata: { name: string } };
  /** The object of this name as the cache has it. */
  readonly cached: DeepReadonly<T> | undefined;
  /** Who writes, in managedFields. */
  readonly fieldManager: string;
}

/** What became of a wish. */
export type ChildOutcome<T extends KubernetesObject> =
  | { readonly kind: 'created' | 'changed' | 'unchanged'; readonly object: DeepReadonly<T> }
  /** Its deletion is under way; the name is free when it is over, and its event wakes the owner. */
  | { readonly kind: 'leaving'; readonly object: DeepReadonly<T> }
  /** Somebody else's has the name. It was not touched. */
  | { readonly kind: 'foreign'; readonly object: DeepReadonly<T> };

export interface ChildContext {
  readonly client: Client;
  readonly signal: AbortSignal;
}

/**
 * Makes the child of an owner what the owner wants, with as few requests as it takes: none if the
 * cache shows that nothing is to do.
 *
 * It is created by POST, since an apply would adopt what has the name already, and changed by
 * server-side apply that names the uid, since an apply would create what has just gone. Fields that
 * `desired` is silent about stay as others have set them. Rejects with `conflict` if the child was
 * replaced meanwhile: its event is on the way.
 */
export async function ensureChild<T extends KubernetesObject>(
  context: ChildContext,
  wish: ChildWish<T>,
): Promise<ChildOutcome<T>> {
  const { resource, owner, desired, fieldManager } = wish;
  const { client, signal } = context;
  let child = wish.cached;
  if (!child) {
    try {
      return {
        kind: 'created',
        object: shared(await client.create(resource, desired, { fieldManager, signal })),
      };
    } catch (error) {
      if (!isApiError(error, 'alreadyExists')) throw error;
      // The cache did not know of it: it may be ours, from a create whose answer was lost.
      const { name } = desired.metadata;
      const { namespace } = owner.metadata;
      child = shared(await client.get(resource, { name, namespace }, { signal }));
    }
  }
  if (!isControlledBy(child, owner)) {
    return { kind: isForerunners(child, owner) ? 'leaving' : 'foreign', object: child };
  }
  if (child.metadata.deletionTimestamp !== undefined) return { kind: 'leaving', object: child };
  if (covers(child, desired)) return { kind: 'unchanged', object: child };
  return { kind: 'changed', object: await change(context, wish, child) };
}

async function change<T extends KubernetesObject>(
  context: ChildContext,
  { resource, desired, fieldManager }: ChildWish<T>,
  child: DeepReadonly<T>,
): Promise<DeepReadonly<T>> {
  const { client, signal } = context;
  const { uid } = child.metadata;
  const body = { ...desired, metadata: { ...desired.metadata, uid } };
  const patch = { type: 'apply', body, force: true } as const;
  try {
    await takeOver(context, { resource, object: child, fieldManager });
    return shared(await client.patch(resource, child.metadata, patch, { fieldManager, signal }));
  } catch (cause) {
    if (!isOfAnother(cause)) throw cause;
    const { kind, metadata } = child;
    const message = `${kind} "${metadata.name}" is no longer the one that the cache has`;
    throw new ApiError({ kind: 'conflict', message, cause });
  }
}

/** It is gone, or another of its name has come, whose uid cannot be changed to ours. */
function isOfAnother(error: unknown): boolean {
  return (
    isApiError(error, 'notFound') ||
    (isApiError(error, 'invalid') &&
      (error.details?.causes?.some(({ field }) => field === 'metadata.uid') ?? false))
  );
}

/**
 * The child of an owner that had this name before: the garbage collector is about to delete it.
 */
function isForerunners(
  child: DeepReadonly<KubernetesObject>,
  owner: DeepReadonly<KubernetesObject>,
): boolean {
  const reference = controllerOf(child);
  return (
    reference?.kind === owner.kind &&
    reference.name === owner.metadata.name &&
    groupOf(reference.apiVersion) === groupOf(owner.apiVersion)
  );
}

function groupOf(apiVersion: string): string {
  return apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '';
}

function shared<T extends KubernetesObject>(object: T): DeepReadonly<T>;
function shared(object: unknown): unknown {
  return object;
}
