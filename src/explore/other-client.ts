import { isApiError } from '../api/api-error.ts';
import { controllerOf } from '../api/metadata.ts';
import type { KubernetesObject } from '../api/object.ts';
import type { Resource } from '../api/resource.ts';
import type { Client } from '../client/client.ts';
import type { History } from './history.ts';

/** Name of the client in the history. */
export const OTHER_CLIENT = 'other client';

/** What another client does with an owned object. */
export type Interference = 'delete' | 'recreate' | 'orphan';

/** Interferes with the first object that exists and has a controller owner. Does nothing if there is none. */
export async function interfere(
  client: Client,
  history: History,
  interference: Interference,
): Promise<void> {
  const owned = ownedObject(history);
  if (!owned) return;
  history.writer = OTHER_CLIENT;
  try {
    await send(client, interference, owned);
  } catch (error) {
    // The object is being deleted, has a finalizer, or cannot be copied.
    if (!isApiError(error, 'notFound', 'conflict', 'alreadyExists', 'invalid')) throw error;
  }
}

interface OwnedObject {
  readonly resource: Resource;
  readonly object: KubernetesObject;
}

async function send(
  client: Client,
  interference: Interference,
  { resource, object }: OwnedObject,
): Promise<void> {
  const { uid, name, namespace } = object.metadata;
  if (interference === 'orphan') {
    const body = { metadata: { uid, ownerReferences: null } };
    await client.patch(resource, object.metadata, { type: 'merge', body });
    return;
  }
  const options = { uid, gracePeriodSeconds: 0, propagationPolicy: 'Background' } as const;
  await client.delete(resource, object.metadata, options);
  if (interference === 'delete') return;
  const { status: _, ...rest } = object as KubernetesObject & { readonly status?: unknown };
  const copy = { ...rest, metadata: { name, ...(namespace !== undefined && { namespace }) } };
  await client.create(resource, copy);
}

function ownedObject(history: History): OwnedObject | undefined {
  for (const { verb, resource: key, object: created } of history.changes) {
    if (verb !== 'create' || !controllerOf(created)) continue;
    const resource = resourceOf(key, created);
    const object = history
      .list(resource, created.metadata.namespace)
      .find((one) => one.metadata.deletionTimestamp === undefined && controllerOf(one));
    if (object) return { resource, object };
  }
  return undefined;
}

function resourceOf(key: string, { apiVersion, kind, metadata }: KubernetesObject): Resource {
  const [group = '', plural = ''] = key.split('/');
  const version = apiVersion.split('/').at(-1) ?? '';
  return { group, version, plural, kind, namespaced: metadata.namespace !== undefined };
}
