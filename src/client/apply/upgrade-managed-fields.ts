import type { DeepReadonly, KubernetesObject, ManagedFieldsEntry } from '../../api/object.ts';
import { objectPath } from '../../api/resource.ts';
import type { Resource } from '../../api/resource.ts';
import type { Client } from '../client.ts';

export interface Ownership {
  readonly resource: Resource;
  readonly object: DeepReadonly<KubernetesObject>;
  readonly fieldManager: string;
}

/**
 * Turns the fields that `fieldManager` owns by having created or updated the object into fields
 * that it owns by having applied them. Otherwise a field that a later apply leaves out would stay:
 * its other entry still claims it. Nothing is written if there is nothing to turn.
 *
 * The technique is that of client-go's upgrade from client-side to server-side apply. Rejects with
 * `conflict` if the object changed in between.
 */
export async function upgradeManagedFields(
  {
    client,
    signal,
  }: { readonly client: Pick<Client, 'raw' | 'patch'>; readonly signal: AbortSignal },
  { resource, object, fieldManager }: Ownership,
): Promise<void> {
  const { metadata } = object;
  // Caches do not have managedFields, and clients leave them out of their answers.
  const live = await client.raw({ path: objectPath(resource, metadata), signal });
  const { managedFields, resourceVersion, uid } = metadataOf(live);
  const turned = managedFields && asApplied(managedFields, fieldManager);
  // Another of this name is not ours to change; the write that follows will say what is wrong.
  if (!turned || uid !== metadata.uid) return;
  await client.patch(
    resource,
    metadata,
    {
      type: 'json',
      body: [
        { op: 'replace', path: '/metadata/managedFields', value: turned },
        { op: 'replace', path: '/metadata/resourceVersion', value: resourceVersion },
      ],
    },
    { fieldManager, signal },
  );
}

/** The entries with all of `manager`'s in its one of operation Apply; undefined if they are so. */
export function asApplied(
  entries: readonly ManagedFieldsEntry[],
  manager: string,
): ManagedFieldsEntry[] | undefined {
  const isOurs = (entry: ManagedFieldsEntry) => entry.manager === manager && !entry.subresource;
  const updated = entries.filter((entry) => isOurs(entry) && entry.operation === 'Update');
  const [first] = updated;
  if (!first) return undefined;
  const applied = entries.find((entry) => isOurs(entry) && entry.operation === 'Apply');
  const fieldsV1 = [...updated, ...(applied ? [applied] : [])]
    .map((entry) => entry.fieldsV1 ?? {})
    .reduce(union, {});
  const others = entries.filter((entry) => entry !== applied && !updated.includes(entry));
  return [...others, { ...(applied ?? first), operation: 'Apply', fieldsV1 }];
}

type Fields = Record<string, unknown>;

/** Sets of fields are trees; depth is that of the object's schema. */
function union(left: Fields, right: Fields): Fields {
  const merged = new Map(Object.entries(left));
  for (const [name, value] of Object.entries(right)) {
    const present = merged.get(name);
    merged.set(name, isFields(present) && isFields(value) ? union(present, value) : value);
  }
  return Object.fromEntries(merged);
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null;
}

function metadataOf(object: unknown): {
  readonly managedFields?: readonly ManagedFieldsEntry[];
  readonly resourceVersion?: string;
  readonly uid?: string;
} {
  const metadata = isFields(object) ? object['metadata'] : undefined;
  return isFields(metadata) ? metadata : {};
}
