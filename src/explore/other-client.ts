import { isApiError } from '../api/api-error.ts';
import { controllerOf } from '../api/metadata.ts';
import type { KubernetesObject } from '../api/object.ts';
import type { Client } from '../client/client.ts';
import type { ApiCall } from './api-call.ts';
import type { Interference } from './faults.ts';
import type { ChangeRecord, History, ObjectInHistory } from './history.ts';
import { resourceOf } from './history.ts';
import { scenarioObjects } from './scenario-objects.ts';

/** Name of the client in the history. */
export const OTHER_CLIENT = 'other client';

/** Annotation that the client adds to objects of others. */
export const MARK = 'other-client.explored';

/** Returns the uids of the objects that the client created. */
export function copiesIn(changes: readonly ChangeRecord[]): ReadonlySet<string> {
  return new Set(
    changes.flatMap(({ verb, by, object }) =>
      verb === 'create' && by === OTHER_CLIENT ? [object.metadata.uid] : [],
    ),
  );
}

/** Interferes with the first object that exists and has a controller owner. Does nothing if there is none. */
export async function interfere(
  client: Client,
  history: History,
  interference: Interference,
  call: ApiCall | undefined,
): Promise<void> {
  history.writer = OTHER_CLIENT;
  try {
    if (interference === 'occupy') await occupy(client, call);
    else {
      const owned = ownedObject(history);
      if (interference === 'annotate') await annotate(client, history, owned);
      else if (owned) await send(client, interference, owned);
    }
  } catch (error) {
    // The object is being deleted, has a finalizer, or cannot be copied.
    if (!isApiError(error, 'notFound', 'conflict', 'alreadyExists', 'invalid')) throw error;
  }
}

async function send(
  client: Client,
  interference: Exclude<Interference, 'occupy' | 'annotate'>,
  owned: ObjectInHistory,
): Promise<void> {
  const { resource, object } = owned;
  const { uid, name } = object.metadata;
  switch (interference) {
    case 'orphan': {
      const body = { metadata: { uid, ownerReferences: null } };
      await client.patch(resource, object.metadata, { type: 'merge', body });
      return;
    }
    case 'lookalike':
      await client.create(resource, copyOf(object, { name: `${name}-copy` }));
      await client.create(resource, copyOf(object, { namespace: 'kube-public' }));
      return;
    case 'delete':
    case 'recreate': {
      const options = { uid, gracePeriodSeconds: 0, propagationPolicy: 'Background' } as const;
      await client.delete(resource, object.metadata, options);
      if (interference === 'recreate') await client.create(resource, copyOf(object, {}));
    }
  }
}

/** Annotates an owned object and its owner, or the objects of the scenario if there is none. */
async function annotate(
  client: Client,
  history: History,
  owned: ObjectInHistory | undefined,
): Promise<void> {
  const targets = owned
    ? [owned, ...ownersOf(history, owned.object)]
    : scenarioObjects(history).map(({ resource, draft }) => ({ resource, object: draft }));
  for (const { resource, object } of targets) {
    const body = { metadata: { annotations: { [MARK]: 'true' } } };
    await client.patch(resource, object.metadata, { type: 'merge', body });
  }
}

/** Creates an object with the name that a request is about to use. */
async function occupy(client: Client, call: ApiCall | undefined): Promise<void> {
  const { body } = call ?? {};
  const object = body?.();
  if (!call?.info || object?.metadata.name === undefined) return;
  const { group, resource, namespace } = call.info;
  const target = resourceOf(`${group}/${resource}`, object);
  await client.create(
    { ...target, namespaced: namespace !== undefined },
    copyOf(object, namespace === undefined ? {} : { namespace }),
  );
}

/** Returns an object of the same content without an owner. */
function copyOf(
  object: KubernetesObject,
  at: { readonly name?: string; readonly namespace?: string },
): KubernetesObject {
  const { status: _, ...rest } = object as KubernetesObject & { readonly status?: unknown };
  const { name, namespace, labels } = object.metadata;
  const metadata = { name, ...(namespace !== undefined && { namespace }), ...at };
  return { ...rest, metadata: { ...metadata, ...(labels && { labels }) } } as KubernetesObject;
}

function ownedObject(history: History): ObjectInHistory | undefined {
  const created = new Set(
    history.changes.flatMap(({ verb, object }) =>
      verb === 'create' && controllerOf(object) ? [object.metadata.uid] : [],
    ),
  );
  return [...history.objects()].find(
    ({ object }) =>
      created.has(object.metadata.uid) &&
      object.metadata.deletionTimestamp === undefined &&
      controllerOf(object),
  );
}

function ownersOf(history: History, { metadata }: KubernetesObject): ObjectInHistory[] {
  const uids = new Set(metadata.ownerReferences?.map(({ uid }) => uid));
  return [...history.objects()].filter(({ object }) => uids.has(object.metadata.uid));
}
