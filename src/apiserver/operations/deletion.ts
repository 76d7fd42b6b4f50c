import { timestamp } from '../../api/conditions.ts';
import { equalJson } from '../../api/equal.ts';
import { copyJson } from '../json/copy-json.ts';
import { deletionFinalizers } from '../objects/finalizers.ts';
import type {
  ApiObject,
  ResourceDefinition,
  StoredObject,
} from '../objects/resource-definition.ts';
import { shallowCopy } from '../objects/resource-definition.ts';
import { conflict, forbiddenError } from '../objects/status-error.ts';
import type { DeletionOptions } from '../request/delete-options.ts';
import type { Call } from './call.ts';
import { removeObject } from './guaranteed-update.ts';

/** The namespaces that cannot be deleted. Upstream: `immortalNamespaces`. */
const IMMORTAL_NAMESPACES: ReadonlySet<string> = new Set(['default', 'kube-system', 'kube-public']);

interface Deletion {
  /** The last state of a removed object, otherwise the state with a `deletionTimestamp`. */
  readonly object: StoredObject;
  readonly isRemoved: boolean;
}

/** `expired`: the grace period of 0 is stored, and the object is not removed yet. */
interface DeletionStep {
  readonly object: StoredObject;
  readonly state: 'terminating' | 'expired' | 'removed';
}

/**
 * Starts or finishes the deletion of one object. An object without finalizers and grace period is removed at once.
 * Otherwise it gets a `deletionTimestamp`, and is removed with its last finalizer or by a deletion with grace period 0.
 *
 * Rejects with a `StatusError`: 409 if a precondition does not hold, 403 if it is a namespace of the system
 */
export async function deleteObject(
  call: Pick<Call, 'backend' | 'definition'>,
  stored: StoredObject,
  options: DeletionOptions,
): Promise<Deletion> {
  const { object, state } = startDeletion(call, stored, options);
  if (state === 'expired') return { object: await removeExpired(call, object), isRemoved: true };
  return { object, isRemoved: state === 'removed' };
}

/**
 * The synchronous part of `deleteObject`, which is all of it for a kind without grace periods.
 *
 * @throws {StatusError}
 */
export function startDeletion(
  call: Pick<Call, 'backend' | 'definition'>,
  stored: StoredObject,
  options: DeletionOptions,
): DeletionStep {
  const { backend, definition } = call;
  requirePreconditions(definition, stored, options);
  requireNotImmortal(definition, stored);
  const { hooks, ownsNothing, orphansDependents } = definition;
  const now = backend.clock.now();
  const grace = graceFor(stored, definition, options.gracePeriodSeconds, now);
  if (grace === 'unchanged') return { object: stored, state: 'terminating' };
  const finalizers = deletionFinalizers(
    stored.metadata.finalizers,
    ownsNothing ? 'Background' : options.propagationPolicy,
    orphansDependents,
  );
  const terminating = () =>
    writeTerminating(
      call,
      stored,
      terminatingObject(stored, definition, grace, finalizers),
      options,
    );
  const isBlocked =
    grace.seconds > 0 || finalizers.length > 0 || hooks?.blocksRemoval?.(stored) === true;
  if (isBlocked) return { object: terminating(), state: 'terminating' };
  // A kind with grace periods first stores that this one is 0.
  const last = hooks?.gracePeriodSeconds ? terminating() : stored;
  if (options.dryRun) return { object: last, state: 'removed' };
  if (last !== stored && backend.betweenWrites) return { object: last, state: 'expired' };
  return { object: removeObject(backend, definition, last), state: 'removed' };
}

/**
 * Removes an object whose grace period of 0 is stored. As with etcd, this is a write of its own, and clients see the first one
 * before it. Returns the last state of the object.
 */
async function removeExpired(
  { backend, definition }: Pick<Call, 'backend' | 'definition'>,
  expired: StoredObject,
): Promise<StoredObject> {
  await backend.betweenWrites?.();
  const { namespace, name, uid } = expired.metadata;
  const current = backend.store.collection(definition).get(namespace, name);
  return current?.metadata.uid === uid ? removeObject(backend, definition, current) : expired;
}

function writeTerminating(
  { backend: { store, observer }, definition }: Pick<Call, 'backend' | 'definition'>,
  stored: StoredObject,
  terminating: ApiObject,
  { dryRun }: DeletionOptions,
): StoredObject {
  if (dryRun || equalJson(terminating, stored)) return terminating;
  const object = store.collection(definition).put(terminating);
  observer.written(definition, object);
  return object;
}

interface Grace {
  readonly seconds: number;
  /** `deletionTimestamp`: the end of the grace period. */
  readonly until: string;
}

/** Returns the grace period of the deletion; `unchanged` if the object is being deleted and the request does not shorten it. */
function graceFor(
  stored: StoredObject,
  { hooks }: ResourceDefinition,
  requested: number | undefined,
  now: number,
): Grace | 'unchanged' {
  const { deletionTimestamp, deletionGracePeriodSeconds: current = 0 } = stored.metadata;
  if (deletionTimestamp === undefined) {
    const seconds = hooks?.gracePeriodSeconds?.(stored, requested) ?? 0;
    return { seconds, until: timestamp(now + seconds * 1000) };
  }
  if (current === 0) return { seconds: 0, until: deletionTimestamp };
  // A grace period that has started can only become shorter.
  if (requested === undefined || requested >= current) return 'unchanged';
  const until = Date.parse(deletionTimestamp) + (requested - current) * 1000;
  if (until >= now) return { seconds: requested, until: timestamp(until) };
  // It is over. The kubelet still has to finish the deletion, unless the client asks for 0 seconds.
  return { seconds: Math.min(requested, 1), until: timestamp(now) };
}

/** Returns the object with the `deletionTimestamp` and the finalizers of a deletion. */
function terminatingObject(
  stored: StoredObject,
  { hooks }: ResourceDefinition,
  { seconds, until }: Grace,
  finalizers: readonly string[],
): ApiObject {
  const object = hooks ? (copyJson(stored) as ApiObject) : shallowCopy(stored);
  const { metadata } = object;
  if (finalizers.length > 0) metadata.finalizers = [...finalizers];
  else delete metadata.finalizers;
  const isNew = metadata.deletionTimestamp === undefined;
  metadata.deletionTimestamp = until;
  if (hooks?.markDeleted) {
    if (isNew) hooks.markDeleted(object);
    return object;
  }
  metadata.deletionGracePeriodSeconds = seconds;
  if (isNew && metadata.generation) metadata.generation++;
  return object;
}

/** @throws {StatusError} 409 if the uid or the resourceVersion of the options is another one */
export function requirePreconditions(
  definition: ResourceDefinition,
  { metadata }: StoredObject,
  { uid, resourceVersion }: DeletionOptions,
): void {
  // A real server names the kind here where it names the resource elsewhere.
  const { group, kind } = definition.storedAs?.definition ?? definition;
  if (uid !== undefined && uid !== metadata.uid) {
    throw conflict(
      { group, plural: kind },
      metadata.name,
      `the UID in the precondition (${uid}) does not match the UID in record (${metadata.uid}). The object might have been deleted and then recreated`,
    );
  }
  if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion) {
    throw conflict(
      { group, plural: kind },
      metadata.name,
      `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${metadata.resourceVersion}). The object might have been modified`,
    );
  }
}

/** @throws {StatusError} 403 if it is a namespace of the system */
function requireNotImmortal(definition: ResourceDefinition, { metadata }: StoredObject): void {
  const { group, plural } = definition;
  if (group === '' && plural === 'namespaces' && IMMORTAL_NAMESPACES.has(metadata.name)) {
    throw forbiddenError(definition, metadata.name, 'this namespace may not be deleted');
  }
}
