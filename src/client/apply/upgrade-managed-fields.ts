import type { DeepReadonly, KubernetesObject, ManagedFieldsEntry } from '../../api/object.ts';
import { objectPath } from '../../api/resource.ts';
import type { Resource } from '../../api/resource.ts';
import { isRecord } from '../../util/values.ts';
import type { Client } from '../client.ts';
import { retryOnConflict } from '../retry-on-conflict.ts';

/** Object, and the field manager whose fields are upgraded. */
export interface ManagedFieldsUpgrade {
  readonly resource: Resource;
  readonly object: DeepReadonly<KubernetesObject>;
  readonly fieldManager: string;
}

/**
 * Converts the entries of `fieldManager` in `managedFields` from operation Update to Apply. Without it,
 * a later apply cannot remove a field, because the Update entry still owns the field. Writes nothing if
 * there is no Update entry.
 *
 * Corresponds to client-go's `csaupgrade`. If the object changes meanwhile, as in a rollout, it is read again; rejects with
 * `conflict` after five attempts.
 */
export async function upgradeManagedFields(
  context: UpgradeContext,
  upgrade: ManagedFieldsUpgrade,
): Promise<void> {
  const { signal } = context;
  await retryOnConflict(() => upgradeOnce(context, upgrade), { signal, pauseMs: 0 });
}

interface UpgradeContext {
  readonly client: Pick<Client, 'raw' | 'patch'>;
  readonly signal: AbortSignal;
}

async function upgradeOnce(
  { client, signal }: UpgradeContext,
  { resource, object, fieldManager }: ManagedFieldsUpgrade,
): Promise<void> {
  const { metadata } = object;
  // Caches and typed reads omit managedFields.
  const live = await client.raw({ path: objectPath(resource, metadata), signal });
  const { managedFields, resourceVersion, uid } = metadataOf(live);
  const upgraded = managedFields && withApplyOperation(managedFields, fieldManager);
  // If the object was replaced, the write that follows reports the conflict.
  if (!upgraded || uid !== metadata.uid) return;
  await client.patch(
    resource,
    metadata,
    {
      type: 'json',
      body: [
        { op: 'replace', path: '/metadata/managedFields', value: upgraded },
        { op: 'replace', path: '/metadata/resourceVersion', value: resourceVersion },
      ],
    },
    { fieldManager, signal },
  );
}

/** Merges the Update entries of `manager` into its Apply entry; undefined if there are none. */
function withApplyOperation(
  entries: readonly ManagedFieldsEntry[],
  manager: string,
): ManagedFieldsEntry[] | undefined {
  const isOwn = (entry: ManagedFieldsEntry) => entry.manager === manager && !entry.subresource;
  const updated = entries.filter((entry) => isOwn(entry) && entry.operation === 'Update');
  const [first] = updated;
  if (!first) return undefined;
  const applied = entries.find((entry) => isOwn(entry) && entry.operation === 'Apply');
  const fieldsV1 = [...updated, ...(applied ? [applied] : [])]
    .map((entry) => entry.fieldsV1 ?? {})
    .reduce(union, {});
  const others = entries.filter((entry) => entry !== applied && !updated.includes(entry));
  return [...others, { ...(applied ?? first), operation: 'Apply', fieldsV1 }];
}

type Fields = Record<string, unknown>;

/** Merges two field sets. Recursion is bounded by the depth of the schema. */
function union(left: Fields, right: Fields): Fields {
  const merged = new Map(Object.entries(left));
  for (const [name, value] of Object.entries(right)) {
    const present = merged.get(name);
    merged.set(name, isRecord(present) && isRecord(value) ? union(present, value) : value);
  }
  return Object.fromEntries(merged);
}

function metadataOf(object: unknown): {
  readonly managedFields?: readonly ManagedFieldsEntry[];
  readonly resourceVersion?: string;
  readonly uid?: string;
} {
  const metadata = isRecord(object) ? object['metadata'] : undefined;
  return isRecord(metadata) ? metadata : {};
}
