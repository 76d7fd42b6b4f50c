import { equalJson } from '../../api/equal.ts';
import { hasFinalizers } from '../objects/finalizers.ts';
import type {
  ApiObject,
  ResourceDefinition,
  StoredObject,
} from '../objects/resource-definition.ts';
import {
  StatusError,
  alreadyExists,
  conflict,
  notFoundError,
  requestTimeout,
} from '../objects/status-error.ts';
import { toRequestedVersion } from '../request/negotiation.ts';
import { pause } from '../request/pause.ts';
import { isDryRun } from '../request/request-info.ts';
import { beforeUpdate } from '../strategy/before-update.ts';
import { admitDraft, requireAdmitted } from '../admission/admit.ts';
import type { Backend, Call, ObjectAnswer } from './call.ts';
import { storable } from './storage-limit.ts';

/** The next state of an object, with its defaults and managed fields. */
export interface UpdatedObject {
  readonly object: ApiObject;
  /**
   * Whether the object is stored even if it equals the stored one, and so is the next one.
   * @default false
   */
  readonly writesEqual?: boolean;
}

/** Returns the next state of `live`, in the version of the request. Upstream: `rest.UpdatedObjectInfo`. */
export type ObjectUpdate = (live: StoredObject) => UpdatedObject | Promise<UpdatedObject>;

/**
 * Limits of the attempts of an update. Each one fails because another write of the object succeeded, so that the
 * limits are only reached if a webhook writes the object that it reviews.
 */
const MAX_ATTEMPTS = 1000;
const MAX_DURATION_MS = 60_000;

/** Another write came between reading and storing the object. The update is repeated. */
class StaleObject extends StatusError {}

/**
 * Reads the object with the name in the path and passes it to `tryUpdate`, until no other write comes between reading and
 * storing it. Upstream: `GuaranteedUpdate`.
 *
 * @param create called if there is no such object. By default, that is a 404.
 */
export async function guaranteedUpdate<T>(
  call: Call,
  tryUpdate: (live: StoredObject) => Promise<T>,
  create?: () => Promise<T>,
): Promise<T> {
  const { backend, definition, info, request, warnings } = call;
  const { clock, store, converter } = backend;
  const { namespace, name = '' } = info;
  const startedMs = clock.monotonic();
  const { length } = warnings;
  for (let attempt = 1; ; attempt++) {
    try {
      const live = store.collection(definition).get(namespace, name);
      if (!live && create) return await create();
      if (!live) throw notFoundError(definition, name);
      await converter.prepare([live], definition);
      return await tryUpdate(live);
    } catch (error) {
      if (!(error instanceof StaleObject)) throw error;
      request.signal?.throwIfAborted();
      const isLate = clock.monotonic() - startedMs >= MAX_DURATION_MS;
      if (isLate || attempt === MAX_ATTEMPTS) throw requestTimeout();
      warnings.length = length;
    }
  }
}

/** Updates the object with the name in the path. Rejects like `storeUpdate`. */
export function updateObject(
  call: Call,
  update: ObjectUpdate,
  create?: () => Promise<ObjectAnswer>,
): Promise<ObjectAnswer> {
  return guaranteedUpdate(
    call,
    async (live) => ({ kind: 'object', code: 200, object: await storeUpdate(call, live, update) }),
    create,
  );
}

/**
 * Stores the next state of an object. Writes nothing if nothing changed. Removes the object if it is being deleted and
 * has no finalizer and grace period left.
 *
 * Rejects with a `StatusError`: 409 if the next state has an outdated resourceVersion, 422 if it is invalid; or with a
 *   `StaleObject` if the object has changed since it was read
 */
export async function storeUpdate(
  call: Call,
  live: StoredObject,
  update: ObjectUpdate,
): Promise<StoredObject> {
  const { definition } = call;
  const { storedAs } = definition;
  const before = toRequestedVersion(live, definition);
  const updated = await update(before);
  const draft = await admitDraft(call, updated.object, before);
  await pause(call, live);
  const object = await beforeUpdate(call, storedAs ? live : before, draft);
  await requireAdmitted(call, 'UPDATE', object, live);
  const stored = storedCall(call);
  const next = await call.backend.converter.toStorage(object, stored.definition);
  await pause(call, live);
  return replaceObject(stored, live, { ...updated, object: next }, object);
}

/** Returns the call for the kind that stores the object. */
export function storedCall(call: Call): Call {
  const { storedAs } = call.definition;
  return storedAs ? { ...call, definition: storedAs.definition } : call;
}

/**
 * Returns the stored object, or `requested`, the same object in the requested version, if the write removes it.
 *
 * @throws {StaleObject} if the object has changed since `previous` was read
 */
async function replaceObject(
  call: Call,
  previous: StoredObject,
  { object: next, writesEqual = false }: UpdatedObject,
  requested: StoredObject,
): Promise<StoredObject> {
  const { backend, definition } = call;
  requireUnchanged(call, previous);
  const isComparable = !writesEqual && !unequal.has(previous);
  if (isComparable && isUnchanged(next, previous)) return previous;
  const isLast = canBeRemoved(next, definition);
  if (isDryRun(call)) return isLast ? requested : next;
  await pause(call, previous);
  const own = isLast ? next : await storable(call, next, previous);
  await pause(call, previous);
  requireUnchanged(call, previous);
  if (isLast) {
    // The DELETED event has the stored state: the change that removes the object is never stored.
    removeObject(backend, definition, previous);
    return requested;
  }
  return putObject(call, { object: own, writesEqual });
}

/**
 * Stores a new object.
 *
 * @param names names of the resource in an error
 * @throws {StatusError} 409 if there is one of this name
 * @throws {StaleObject} if there was none when an apply or an update read it
 */
export async function insertObject(
  call: Call,
  { object, writesEqual = false }: UpdatedObject,
  names: ResourceDefinition = call.definition,
): Promise<StoredObject> {
  const { backend, definition, info } = call;
  const { namespace, name, resourceVersion } = object.metadata;
  const isCreate = info.verb === 'create';
  // As upstream: the storage rejects a valid version, and a dry run does not reach it.
  if (isCreate && !isDryRun(call) && Number(resourceVersion) > 0) {
    throw StatusError.failure({
      code: 500,
      message: 'resourceVersion should not be set on objects to be created',
    });
  }
  const own = isDryRun(call) ? object : await storable(call, object);
  await pause(call);
  const present = backend.store.collection(definition).get(namespace, name);
  if (present) {
    if (!isCreate) throw new StaleObject(alreadyExists(names, name, '').status);
    const isDeleted = present.metadata.deletionTimestamp !== undefined;
    throw alreadyExists(names, name, isDeleted ? 'object is being deleted: ' : '');
  }
  return isDryRun(call) ? object : putObject(call, { object: own, writesEqual });
}

function putObject(
  { backend, definition }: Call,
  { object, writesEqual }: UpdatedObject,
): StoredObject {
  const stored = backend.store.collection(definition).put(object);
  if (writesEqual) unequal.add(stored);
  backend.observer.written(definition, stored);
  return stored;
}

/** Stored objects that no object equals: see `UpdatedObject.writesEqual`. */
const unequal = new WeakSet<StoredObject>();

/** @throws {StaleObject} if the object has changed since it was read */
export function requireUnchanged(
  { backend, definition }: Pick<Call, 'backend' | 'definition'>,
  { metadata }: StoredObject,
): void {
  const { namespace, name, resourceVersion } = metadata;
  const current = backend.store.collection(definition).get(namespace, name);
  if (current?.metadata.resourceVersion === resourceVersion) return;
  throw new StaleObject(conflict(definition, name).status);
}

/** Removes the object from the store; returns its last state. */
export function removeObject(
  { store, observer }: Pick<Backend, 'store' | 'observer'>,
  definition: ResourceDefinition,
  stored: StoredObject,
): StoredObject {
  const removed = store.collection(definition).remove(stored);
  observer.removed(definition, removed);
  return removed;
}

/** Whether the object is being deleted and has no finalizer and grace period left. */
function canBeRemoved(object: StoredObject, { hooks }: ResourceDefinition): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = object.metadata;
  return (
    deletionTimestamp !== undefined &&
    deletionGracePeriodSeconds === 0 &&
    !hasFinalizers(object) &&
    !hooks?.blocksRemoval?.(object)
  );
}

/** Compares objects without managedFields. Shares equal parts apart from the metadata. */
function isUnchanged(next: StoredObject, previous: StoredObject): boolean {
  const { metadata: now, ...rest } = next;
  const { metadata: before, ...formerRest } = previous;
  return equalJson(rest, formerRest) && equalJson(withoutTimes(now), withoutTimes(before));
}

function withoutTimes({ managedFields, ...metadata }: StoredObject['metadata']): object {
  if (!managedFields) return metadata;
  return { ...metadata, managedFields: managedFields.map(({ time: _time, ...entry }) => entry) };
}
