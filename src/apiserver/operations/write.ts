import { isDryRun } from '../request/request-info.ts';
import { shallowCopy } from '../objects/resource-definition.ts';
import { timestamp } from '../../api/conditions.ts';
import type { Backend, Call } from './call.ts';
import { hookContext } from './call.ts';
import { withTrackedFields } from './field-manager.ts';
import { toRequestedVersion, isOfType } from '../request/negotiation.ts';
import { goObject } from '../request/object-decoder.ts';
import { pause } from '../request/pause.ts';
import { hasFinalizers, validateKubeFinalizers } from '../objects/finalizers.ts';
import {
  validateMetadata,
  validateMetadataUpdate,
  withoutDuplicateOwners,
} from '../objects/object-metadata.ts';
import type {
  ApiObject,
  ResourceDefinition,
  StoredAs,
  StoredObject,
} from '../objects/resource-definition.ts';
import { fieldError } from '../../api/field-error.ts';
import {
  StatusError,
  alreadyExists,
  conflict,
  internalError,
  invalidError,
} from '../objects/status-error.ts';
import { attributesOf, requireAdmitted } from './admit.ts';
import type { AppliedFields } from './prepare-update.ts';
import {
  isSpecChanged,
  isUnchanged,
  resetFields,
  withSystemMetadata,
  shareEqualFields,
  withDefaults,
  withoutStatus,
} from './prepare-update.ts';
import { storable } from './storage-limit.ts';
import { requireValid, validateObject, withSchemaErrors } from './validation.ts';

/** An object that can be stored: complete and valid, but not admitted yet. */
interface PreparedObject {
  /** The call for the kind that stores it. */
  readonly call: Call;
  readonly object: ApiObject;
}

/**
 * Prepares an object that was not there: completes its metadata, drops what the client does not decide, validates.
 *
 * @throws {StatusError} 422 if something is wrong with it
 */
async function prepareNew(call: Call, draft: ApiObject): Promise<PreparedObject> {
  const { backend, definition } = call;
  const { storedAs } = definition;
  if (storedAs) {
    const own = toStoredKind(call, storedAs, undefined, draft);
    return prepareNew({ ...call, definition: storedAs.definition }, own);
  }
  const { clock, uid } = backend;
  const { hooks, tracksGeneration, nameFormat = 'dns1123Subdomain' } = definition;
  const own = definition.custom
    ? withDefaults(withoutStatus(draft, definition), definition, 'applied')
    : draft;
  const object: ApiObject = {
    ...own,
    metadata: { ...draft.metadata, uid: uid(), creationTimestamp: timestamp(clock.now()) },
  };
  if (tracksGeneration) object.metadata.generation = 1;
  hooks?.prepareForCreate?.(object, hookContext(call));
  const ofMetadata = validateMetadata(object.metadata, definition.namespaced, nameFormat);
  await pause(call);
  const bySchema = validateObject(call, object, undefined, ofMetadata);
  await pause(call);
  requireValid(
    definition,
    object,
    withSchemaErrors(bySchema, [
      ...ofMetadata,
      ...validateKubeFinalizers(object.metadata, definition),
      ...(hooks?.validate?.(object, undefined) ?? []),
    ]),
  );
  requireValid(definition, object, hooks?.authorize?.(object, undefined, hookContext(call)) ?? []);
  warn(call, object, undefined);
  return { call, object };
}

/**
 * Stores a prepared object.
 *
 * @throws {StatusError} 409 if there is one of this name
 * @throws {StaleObject} if there was none when an apply or an update read it
 */
async function insertNew({ call, object }: PreparedObject): Promise<StoredObject> {
  const { backend, definition } = call;
  const { namespace, name } = object.metadata;
  const collection = backend.store.collection(definition);
  // As upstream: the storage rejects a valid version, and a dry run does not reach it.
  if (
    call.info.verb === 'create' &&
    !isDryRun(call) &&
    Number(object.metadata.resourceVersion) > 0
  ) {
    throw StatusError.failure({
      code: 500,
      message: 'resourceVersion should not be set on objects to be created',
    });
  }
  const own = isDryRun(call) ? object : storable(call, object);
  await pause(call);
  const present = collection.get(namespace, name);
  if (present) {
    if (call.info.verb !== 'create') {
      throw new StaleObject(alreadyExists(definition, name, '').status);
    }
    const isDeleted = present.metadata.deletionTimestamp !== undefined;
    throw alreadyExists(definition, name, isDeleted ? 'object is being deleted: ' : '');
  }
  if (isDryRun(call)) return object;
  const stored = collection.put(own);
  if (call.writesEqual) unequal.add(stored);
  backend.observer.written(definition, stored);
  return stored;
}

/**
 * Stores the fields of `draft` that the main resource or `subresource` can change. Writes nothing if
 * nothing changed. Removes the object if it is being deleted and has no finalizer and grace period left.
 *
 * @throws {StatusError} 409 if `draft` has an outdated resourceVersion, 422 if it is invalid
 */
export async function storeChange(
  call: Call,
  previous: StoredObject,
  draft: ApiObject,
  applied?: AppliedFields,
): Promise<StoredObject> {
  const { definition } = call;
  const before = toRequestedVersion(previous, definition);
  const complete = withDefaults(draft, definition, applied);
  await pause(call, previous);
  const tracked = applied ? complete : await withTrackedFields(call, complete, before);
  const admitted = await mutated(call, tracked, before);
  await pause(call, previous);
  const prepared = await prepareChange(call, definition.storedAs ? previous : before, admitted);
  await requireAdmitted(call, 'UPDATE', prepared.object, previous);
  const stored = await toStorageVersion(prepared);
  await pause(call, previous);
  return replaceStored(stored, previous, prepared.object);
}

/**
 * The draft after mutating admission, whose changes have no owners.
 *
 * @param before the present object, if there is one
 */
async function mutated(call: Call, draft: ApiObject, before?: StoredObject): Promise<ApiObject> {
  const admitted = await admissionResult(call, draft, before);
  return withoutDuplicateOwners(call, admitted, 'admitted');
}

async function admissionResult(
  call: Call,
  draft: ApiObject,
  before: StoredObject | undefined,
): Promise<ApiObject> {
  const { backend, definition } = call;
  if (!backend.admission.mutates(definition) || call.admitted) return draft;
  if (before) requireCurrent(definition, draft, before);
  const objects = { object: draft, oldObject: before };
  const attributes = attributesOf(call, before ? 'UPDATE' : 'CREATE', objects);
  const object = (await backend.admission.mutate(attributes)) ?? draft;
  if (object === draft) return draft;
  return withDefaults(goObject(shallowCopy(object), definition), definition, 'applied');
}

async function prepareChange(
  call: Call,
  previous: StoredObject,
  draft: ApiObject,
): Promise<PreparedObject> {
  const { definition, info } = call;
  const { hooks, storedAs } = definition;
  if (storedAs) {
    const own = toStoredKind(call, storedAs, previous, draft);
    return prepareChange({ ...call, definition: storedAs.definition }, previous, own);
  }
  requireCurrent(definition, draft, previous);
  if (draft.apiVersion === '') {
    throw internalError("Object 'apiVersion' is missing in 'object has no apiVersion field'");
  }
  const own = resetFields(draft, previous, definition, info.subresource);
  const object = { ...own, metadata: withSystemMetadata(own, previous, definition) };
  hooks?.prepareForUpdate?.(object, previous, hookContext(call));
  shareEqualFields(object, previous);
  if (definition.tracksGeneration && isSpecChanged(object, previous, definition)) {
    object.metadata.generation = (previous.metadata.generation ?? 0) + 1;
  }
  const ofMetadata = validateMetadataUpdate(object.metadata, previous.metadata, definition);
  await pause(call, previous);
  const bySchema = validateObject(call, object, previous, ofMetadata.ofRules);
  await pause(call, previous);
  requireValid(
    definition,
    object,
    withSchemaErrors(bySchema, [
      ...(hooks?.validate?.(object, previous) ?? []),
      ...(hooks?.validateUpdate?.(object, previous, info.subresource) ?? []),
      ...ofMetadata.errors,
      ...(isOfType(object, definition) ? ofMetadata.ofRules : []),
      ...validateKubeFinalizers(object.metadata, definition),
    ]),
  );
  requireValid(definition, object, hooks?.authorize?.(object, previous, hookContext(call)) ?? []);
  warn(call, object, previous);
  return { call, object };
}

function warn(
  { definition, warnings, info }: Pick<Call, 'definition' | 'warnings' | 'info'>,
  object: StoredObject,
  previous: StoredObject | undefined,
): void {
  // As upstream, an apply of the status that creates an object has the warnings of a new one.
  const subresource = previous && info.subresource;
  const texts = definition.warnings?.(object, previous, subresource) ?? [];
  for (const text of texts) warnings.push(text);
}

/**
 * Returns the stored object, or `requested`, the same object in the requested version, if the write removes it.
 *
 * @throws {StaleObject} if the object has changed since `previous` was read
 */
function replaceStored(
  { call, object: next }: PreparedObject,
  previous: StoredObject,
  requested: StoredObject,
): StoredObject {
  const { backend, definition } = call;
  requireUnchanged(call, previous);
  const isComparable = !call.writesEqual && !unequal.has(previous);
  if (isComparable && isUnchanged(next, previous)) return previous;
  const isLast = canBeRemoved(next, definition);
  if (isDryRun(call)) return isLast ? requested : next;
  if (isLast) {
    // The DELETED event has the stored state: the change that removes the object is never stored.
    removeObject(backend, definition, previous);
    return requested;
  }
  const stored = backend.store.collection(definition).put(storable(call, next, previous));
  if (call.writesEqual) unequal.add(stored);
  backend.observer.written(definition, stored);
  return stored;
}

/** Stored objects that no object equals: see `Call.writesEqual`. */
const unequal = new WeakSet<StoredObject>();

/**
 * Returns the object to store for a draft of another representation.
 *
 * @throws {StatusError} 422 if it is invalid
 */
function toStoredKind(
  call: Call,
  { definition: stored, fromStored, toStored }: StoredAs,
  previous: StoredObject | undefined,
  draft: ApiObject,
): ApiObject {
  const { definition, info } = call;
  const before = previous && fromStored(previous);
  const own = before ? resetFields(draft, before, definition, info.subresource) : draft;
  requireValid(stored, own, [
    ...validateObject(call, own),
    ...(definition.hooks?.validate?.(own, before) ?? []),
  ]);
  return withDefaults(toStored(own), stored);
}

/** Another write came between reading and storing the object. The router repeats the operation. */
export class StaleObject extends StatusError {}

/** @throws {StaleObject} */
export function requireUnchanged(
  { backend, definition }: Pick<Call, 'backend' | 'definition'>,
  { metadata }: StoredObject,
): void {
  const { namespace, name, resourceVersion } = metadata;
  const current = backend.store.collection(definition).get(namespace, name);
  if (current?.metadata.resourceVersion === resourceVersion) return;
  throw new StaleObject(conflict(definition, name).status);
}

/**
 * Runs validating admission for a new object and stores it.
 *
 * @throws {StatusError} 409 if the name exists, 422 if the object is invalid
 */
export async function storeNew(call: Call, draft: ApiObject): Promise<StoredObject> {
  const prepared = await prepareNew(call, draft);
  await requireAdmitted(call, 'CREATE', prepared.object, undefined);
  const stored = await toStorageVersion(prepared);
  await pause(call);
  return insertNew(stored);
}

/** Returns the prepared object in the version in which it is stored. */
async function toStorageVersion({ call, object }: PreparedObject): Promise<PreparedObject> {
  return { call, object: await call.backend.converter.toStorage(object, call.definition) };
}

/** A new draft with its defaults, its managed fields and the changes of mutating admission. */
export async function admittedDraft(
  call: Call,
  draft: ApiObject,
  applied: AppliedFields | undefined,
): Promise<ApiObject> {
  const { definition, info } = call;
  const {
    deletionTimestamp: _timestamp,
    deletionGracePeriodSeconds: _grace,
    ...metadata
  } = draft.metadata;
  // As upstream, the status of a custom resource is dropped later: its type matters for the managed fields.
  const isWhole = definition.custom || info.subresource === 'status';
  const sent = isWhole ? draft : withoutStatus(draft, definition);
  const complete = withDefaults({ ...sent, metadata }, definition, applied);
  await pause(call);
  return mutated(call, applied ? complete : await withTrackedFields(call, complete));
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
export function canBeRemoved(object: StoredObject, { hooks }: ResourceDefinition): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = object.metadata;
  return (
    deletionTimestamp !== undefined &&
    deletionGracePeriodSeconds === 0 &&
    !hasFinalizers(object) &&
    !hooks?.blocksRemoval?.(object)
  );
}

/** @throws {StatusError} 500 if a resourceVersion is not a number */
export function requireParsable(resourceVersion: string = ''): void {
  if (/^\d*$/.test(resourceVersion)) return;
  throw StatusError.failure({
    code: 500,
    message: `strconv.ParseUint: parsing ${JSON.stringify(resourceVersion)}: invalid syntax`,
  });
}

/** Checks that the uid and the resourceVersion of the draft, if it has them, are those of the stored object. */
function requireCurrent(
  definition: ResourceDefinition,
  draft: ApiObject,
  { metadata }: StoredObject,
): void {
  const { resourceVersion } = draft.metadata;
  const { group, plural, custom, unconditionalUpdate = !custom } = definition;
  if ((!resourceVersion || resourceVersion === '0') && !unconditionalUpdate) {
    // As upstream, which names the resource here instead of the kind.
    throw invalidError({ group, kind: plural }, metadata.name, [
      fieldError.invalid('metadata.resourceVersion', 0, 'must be specified for an update'),
    ]);
  }
  requireParsable(resourceVersion);
  if (resourceVersion && resourceVersion !== '0' && resourceVersion !== metadata.resourceVersion) {
    throw conflict(definition, metadata.name);
  }
}
