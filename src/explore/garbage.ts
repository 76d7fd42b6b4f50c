import { isApiError } from '../api/api-error.ts';
import { hasFinalizer, withoutFinalizer } from '../api/metadata.ts';
import { NAMESPACES } from '../api/builtin.ts';
import type { KubernetesObject } from '../api/object.ts';
import type { Client } from '../client/client.ts';
import { FOREGROUND } from '../cluster/lifecycle/owner-graph.ts';
import type { History, ObjectInHistory } from './history.ts';

/** Deletes what the garbage collector deletes: objects whose owners do not exist, or wait for the deletion of their dependents. */
export async function collectGarbage(client: Client, history: History): Promise<void> {
  for (;;) {
    const objects = [...history.objects()];
    const living = new Map(objects.map(({ object }) => [object.metadata.uid, object]));
    const garbage = objects.filter(({ object }) => isGarbage(object, living));
    for (const each of garbage) await remove(client, each);
    const waiting = objects.filter(({ object }) => isWaiting(object, objects));
    for (const each of waiting) await finish(client, each);
    if (garbage.length + waiting.length === 0) return;
  }
}

/**
 * Does what the namespace controller does: empties namespaces that are being deleted, and then deletes them. Returns whether
 * some are left, because an object in them has a finalizer.
 */
export async function emptyNamespaces(client: Client, history: History): Promise<boolean> {
  history.writer = 'cluster';
  for (const namespace of terminating(history)) {
    const { name } = namespace.metadata;
    const contents = () =>
      [...history.objects()].filter(({ object }) => object.metadata.namespace === name);
    for (const each of contents()) {
      if (each.object.metadata.deletionTimestamp === undefined) await remove(client, each);
    }
    if (contents().length > 0) continue;
    const body = { ...namespace, spec: { ...namespace.spec, finalizers: [] } };
    await ignoreGone(client.update(NAMESPACES, body, { subresource: 'finalize' }));
  }
  return terminating(history).length > 0;
}

function terminating(history: History) {
  return history
    .list(NAMESPACES)
    .filter(({ metadata }) => metadata.deletionTimestamp !== undefined);
}

function isGarbage(
  { metadata }: KubernetesObject,
  living: ReadonlyMap<string, KubernetesObject>,
): boolean {
  const { ownerReferences = [], deletionTimestamp } = metadata;
  if (ownerReferences.length === 0 || deletionTimestamp !== undefined) return false;
  return ownerReferences.every(({ uid }) => {
    const owner = living.get(uid);
    const isWaiting = owner?.metadata.deletionTimestamp !== undefined;
    return !owner || (isWaiting && hasFinalizer(owner, FOREGROUND));
  });
}

/** Whether an object waits for dependents that do not exist any more. */
function isWaiting(object: KubernetesObject, objects: readonly ObjectInHistory[]): boolean {
  const { uid } = object.metadata;
  const owns = ({ object: { metadata } }: ObjectInHistory) =>
    metadata.ownerReferences?.some((reference) => reference.uid === uid);
  return hasFinalizer(object, FOREGROUND) && !objects.some(owns);
}

async function remove(client: Client, { resource, object }: ObjectInHistory): Promise<void> {
  const { uid } = object.metadata;
  const options = { uid, gracePeriodSeconds: 0, propagationPolicy: 'Background' } as const;
  await ignoreGone(client.delete(resource, object.metadata, options));
}

async function finish(client: Client, { resource, object }: ObjectInHistory): Promise<void> {
  const { uid } = object.metadata;
  const body = { metadata: { uid, finalizers: withoutFinalizer(object, FOREGROUND) } };
  await ignoreGone(client.patch(resource, object.metadata, { type: 'merge', body }));
}

async function ignoreGone(write: Promise<unknown>): Promise<void> {
  try {
    await write;
  } catch (error) {
    if (!isApiError(error, 'notFound', 'conflict')) throw error;
  }
}
