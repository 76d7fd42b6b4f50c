import { ApiError, isApiError } from '../api/api-error.ts';
import { covers, equalJson, memberOf } from '../api/equal.ts';
import { toJsonPointer, valueAt } from '../api/field-path.ts';
import type { FieldPath } from '../api/field-path.ts';
import type { DeepReadonly, KubernetesObject, NewObject } from '../api/object.ts';
import { controllerOf, isControlledBy } from '../api/metadata.ts';
import { apiGroupOf, groupResourceOf, objectPath } from '../api/resource.ts';
import type { Resource } from '../api/resource.ts';
import type { Client } from '../client/client.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { isRecord } from '../util/values.ts';
import { upgradeManagedFields } from '../client/apply/upgrade-managed-fields.ts';
import { ownersOf } from './hot-loop/hot-loop-report.ts';

/** An object of any kind. */
export type AnyObject = KubernetesObject & Readonly<Record<string, unknown>>;

/** The desired state of an owned object. `OwnedObjects` adds the owner reference, and the namespace of the owner if it has one. */
export type OwnedDraft<T extends KubernetesObject = AnyObject> = NewObject<T> & {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
};

/**
 * The name of a field, or the path of one below it: `spec.template.spec.containers`, in which `*` stands for each element of
 * a list. From a list, the elements are removed that cover none of the desired ones.
 */
export type ExactField<T extends KubernetesObject> =
  (keyof T & string) | `${keyof T & string}.${string}`;

/** Arguments of {@link ensureOwnedObject}: the owner, its desired object, and the object in the cache. */
export interface OwnedObjectOptions<T extends KubernetesObject> {
  readonly resource: Resource<T>;
  readonly owner: DeepReadonly<KubernetesObject>;
  /** Complete, with the controller reference to `owner`. */
  readonly desired: OwnedDraft<T>;
  /** The object of this name in the cache. */
  readonly cached: DeepReadonly<T> | undefined;
  /** Name of the writer in managedFields. */
  readonly fieldManager: string;
  /**
   * Whether an object that differs from `desired` is updated. `'always'` applies an object that the cache shows in the
   * desired state, too, which removes fields that were desired before.
   * @default true
   */
  readonly update?: boolean | 'always' | undefined;
  /**
   * Fields from which members are removed that `desired` does not have, also those of members that are objects, unless
   * admission adds them to what `fieldManager` writes.
   * @default none: members that others added stay
   */
  readonly exact?: readonly ExactField<T>[] | undefined;
  /**
   * Decides whether an object of this name without a controller is adopted: it becomes an owned object and is updated.
   * @default never
   */
  readonly adopt?: ((object: DeepReadonly<T>) => boolean | Promise<boolean>) | undefined;
}

/** The result of {@link ensureOwnedObject}, with the object as it is now. */
export type OwnedObjectOutcome<T extends KubernetesObject> =
  /** Results of the write, as in controller-runtime's `OperationResult`. */
  | { readonly kind: 'created' | 'updated' | 'unchanged'; readonly object: DeepReadonly<T> }
  /**
   * An object of this name is being deleted, or is about to be: the owned object itself, or that of a
   * previous owner of the same name. Its deletion enqueues the owner.
   */
  | { readonly kind: 'terminating'; readonly object: DeepReadonly<T> }
  /** An object that the owner does not control has the name. It is not changed. */
  | { readonly kind: 'nameCollision'; readonly object: DeepReadonly<T> };

/** The client, the signal and the log of a sync. */
export interface OwnedObjectContext {
  readonly client: Client;
  readonly signal: AbortSignal;
  /**
   * The clock of the readiness of Pods in a graph.
   * @default the machine's clock
   */
  readonly clock?: Pick<Clock, 'now'> | undefined;
  /**
   * Uids of the objects that `OwnedObjects.ensure` has kept in this sync. A later call of the sync does not prune them.
   * @default calls are independent
   */
  readonly ensured?: Set<string> | undefined;
  /**
   * Receives the desired objects that `OwnedObjects` could not write in this sync, because an object of the name is being
   * deleted, such as `Namespace "a"`. `objectController` does not report their owner as ready.
   * @default only the outcomes have them
   */
  readonly terminating?: Set<string> | undefined;
  /**
   * Receives a line for each object that `OwnedObjects` writes, at verbosity 2.
   * @default none
   */
  readonly log?: Logger | undefined;
}

/**
 * Creates or updates an owned object. Sends no request if the cache shows the desired state.
 *
 * The object is created by POST, because an apply would adopt an object that has the name. It is updated
 * by server-side apply with its uid, because an apply without one would create an object that has just
 * been deleted. Fields that are not in `desired` keep the values that other writers set.
 *
 * @throws {TypeError} if the owner cannot own an object of this scope or namespace
 * @throws {ApiError} `conflict` if the object was replaced meanwhile: the event of the replacement enqueues the
 * owner; `alreadyExists` if an object of this name was deleted meanwhile; any other error of a request
 */
export async function ensureOwnedObject<T extends KubernetesObject>(
  context: OwnedObjectContext,
  options: OwnedObjectOptions<T>,
): Promise<OwnedObjectOutcome<T>> {
  const { resource, owner, desired, fieldManager, update = true, adopt } = options;
  const { client, signal } = context;
  requireOwnable(owner, resource, desired);
  let present = options.cached;
  if (!present) {
    try {
      const created = await client.create(resource, desired, { fieldManager, signal });
      return { kind: 'created', object: shared(created) };
    } catch (error) {
      if (!isApiError(error, 'alreadyExists')) throw error;
      // The object may be ours, from a create whose response was lost.
      present = await existing(context, options, error);
    }
  }
  const isDeleting = present.metadata.deletionTimestamp !== undefined;
  if (!isControlledBy(present, owner)) {
    if (isOfPrevious(present, owner)) return { kind: 'terminating', object: present };
    const isFree = !isDeleting && controllerOf(present) === undefined;
    if (!isFree || !(await adopt?.(present))) return { kind: 'nameCollision', object: present };
    return { kind: 'updated', object: await change(context, options, present) };
  }
  if (isDeleting) return { kind: 'terminating', object: present };
  const isCovered = update !== 'always' && covers(present, desired, resource.fields);
  if (!update || (isCovered && surplusOf(options, present).length === 0)) {
    return { kind: 'unchanged', object: present };
  }
  const object = await change(context, options, present, isCovered);
  const isChanged = object.metadata.resourceVersion !== present.metadata.resourceVersion;
  return { kind: isChanged ? 'updated' : 'unchanged', object };
}

/**
 * Deletes an owned object, and no other object of its name. The objects that it owns are deleted in the background, or before it
 * with `propagationPolicy: 'Foreground'`.
 *
 * @returns false if it is already gone
 * @throws {ApiError} `conflict` if another object has the name, or the server rejects the deletion for now; the sync must
 * be retried, because a rejection causes no event
 */
export async function deleteOwnedObject(
  { client, signal }: OwnedObjectContext,
  resource: Resource,
  { metadata }: DeepReadonly<KubernetesObject>,
  { propagationPolicy = 'Background' }: { propagationPolicy?: 'Background' | 'Foreground' } = {},
): Promise<boolean> {
  const { namespace, name, uid } = metadata;
  // The default of some kinds, such as Jobs, is to orphan them.
  const options = { uid, signal, propagationPolicy } as const;
  try {
    await client.delete(resource, { namespace, name }, options);
    return true;
  } catch (error) {
    if (isApiError(error, 'notFound')) return false;
    throw error;
  }
}

/** Returns the reason and the message that report a name collision, as sample-controller's. */
export function nameCollision(owner: Resource, name: string) {
  const message = `Resource "${name}" already exists and is not managed by ${owner.kind}`;
  return { reason: 'ErrResourceExists', message };
}

/**
 * Returns the reason and the message that report fields of the spec that the server stored with other values than were sent,
 * or undefined. Only admission changes them.
 *
 * @param stored the object of an outcome of `ensureOwnedObject`
 * @param fields of the spec without which the object does not do what it is for
 */
export function admissionChange(
  { apiVersion, kind, spec }: Pick<OwnedDraft, 'apiVersion' | 'kind'> & { readonly spec?: unknown },
  stored: DeepReadonly<KubernetesObject>,
  fields: readonly string[],
): { readonly reason: string; readonly message: string } | undefined {
  const changed = fields.filter(
    (field) => !covers(stored, { apiVersion, kind, spec: { [field]: valueAt(spec, [field]) } }),
  );
  if (changed.length === 0) return undefined;
  const paths = changed.map((field) => `spec.${field}`).join(' and ');
  return changedByAdmission(paths, kind, stored.metadata.name);
}

/** Returns the reason and the message that report what admission changes in an object at each write. */
export function changedByAdmission(change: string, kind: string, name: string) {
  const message = `Admission changes ${change} of ${kind} "${name}"`;
  return { reason: 'ChangedByAdmission', message };
}

/**
 * Calls `work` for every item in batches of 1, 2, 4 and so on, and stops after a batch with a failure,
 * as kube-controller-manager's `slowStartBatch`. If every call fails, as with an exhausted quota, this
 * sends one request and not hundreds.
 *
 * @param work resolves with its failure, or undefined
 * @param maxFailures number of failures in a row after which it stops. After fewer, it starts again with a batch of 1.
 * Use more than 1 if the items differ, so that one that always fails does not prevent the others.
 * @returns the first failure, or undefined
 */
export async function slowStart<T, F>(
  items: readonly T[],
  work: (item: T) => Promise<F | undefined>,
  maxFailures = 1,
): Promise<F | undefined> {
  let first: F | undefined;
  let failuresInRow = 0;
  let isStopped = false;
  for (let from = 0, size = 1; from < items.length && !isStopped;) {
    const results = await Promise.all(items.slice(from, from + size).map(work));
    for (const result of results) {
      first ??= result;
      failuresInRow = result === undefined ? 0 : failuresInRow + 1;
      isStopped ||= failuresInRow >= maxFailures;
    }
    from += size;
    size = results.every((result) => result === undefined) ? 2 * size : 1;
  }
  return first;
}

/**
 * Checks the namespace of an owned object. An owner in a namespace owns objects in the same namespace. A cluster-scoped
 * owner owns objects of any scope and namespace.
 *
 * @throws {TypeError}
 */
function requireOwnable(
  { kind, metadata: { name, namespace } }: DeepReadonly<KubernetesObject>,
  resource: Resource,
  { metadata: desired }: NewObject<KubernetesObject>,
): void {
  const problem = !resource.namespaced
    ? namespace !== undefined
      ? 'an owner in a namespace owns objects in the same namespace'
      : desired.namespace !== undefined && 'its kind is cluster-scoped: remove metadata.namespace'
    : desired.namespace === undefined
      ? 'set metadata.namespace, because the owner is cluster-scoped'
      : namespace !== undefined &&
        desired.namespace !== namespace &&
        'an owner in a namespace owns objects in the same namespace';
  if (!problem) return;
  throw new TypeError(
    `${kind} "${name}" cannot own ${groupResourceOf(resource)} "${desired.name}": ${problem}`,
  );
}

async function existing<T extends KubernetesObject>(
  { client, signal }: OwnedObjectContext,
  { resource, desired }: OwnedObjectOptions<T>,
  alreadyExists: ApiError,
): Promise<DeepReadonly<T>> {
  try {
    return shared(await client.get(resource, desired.metadata, { signal }));
  } catch (error) {
    throw isApiError(error, 'notFound') ? alreadyExists : error;
  }
}

async function change<T extends KubernetesObject>(
  context: OwnedObjectContext,
  options: OwnedObjectOptions<T>,
  present: DeepReadonly<T>,
  isCovered = false,
): Promise<DeepReadonly<T>> {
  const { resource, desired, fieldManager } = options;
  const { client, signal } = context;
  const { uid } = present.metadata;
  const body = { ...desired, metadata: { ...desired.metadata, uid } };
  const patch = { type: 'apply', body, force: true } as const;
  try {
    if (isCovered) return shared((await removeSurplus(context, options, present)) as T);
    await upgradeManagedFields(context, { resource, object: present, fieldManager });
    const request = { fieldManager, signal };
    const applied = await client.patch<KubernetesObject>(
      resource,
      present.metadata,
      patch,
      request,
    );
    return shared((await removeSurplus(context, options, applied)) as T);
  } catch (cause) {
    if (!isReplaced(cause)) throw cause;
    const { kind, metadata } = present;
    const message = `${kind} "${metadata.name}" was deleted or replaced since the cache saw it`;
    throw new ApiError({ kind: 'conflict', message, cause });
  }
}

/** Removes what `options.exact` does not permit, and returns the object without it. */
async function removeSurplus<T extends KubernetesObject>(
  { client, signal }: OwnedObjectContext,
  options: OwnedObjectOptions<T>,
  applied: DeepReadonly<KubernetesObject>,
): Promise<DeepReadonly<KubernetesObject>> {
  if (surplusOf(options, applied).length === 0) return applied;
  const { resource, fieldManager } = options;
  const { metadata } = applied;
  // The client's `get` omits managedFields.
  const live = await client.raw({ path: objectPath(resource, metadata), signal });
  // Admission adds in the name of the writer, and would add it again.
  const removals = surplusOf(options, live)
    .filter((path) => !equalJson(ownersOf(live, path), [fieldManager]))
    .map((path) => ({ op: 'remove', path: toJsonPointer(path) }) as const);
  if (removals.length === 0) return applied;
  const preconditions = [
    { op: 'replace', path: '/metadata/uid', value: metadata.uid },
    {
      op: 'replace',
      path: '/metadata/resourceVersion',
      value: valueAt(live, ['metadata', 'resourceVersion']),
    },
  ] as const;
  const patch = { type: 'json', body: [...preconditions, ...removals] } as const;
  return client.patch<KubernetesObject>(resource, metadata, patch, { fieldManager, signal });
}

/** Returns the paths of what `options.exact` does not permit; elements of a list from the last to the first. */
function surplusOf<T extends KubernetesObject>(
  { exact = [], desired }: Pick<OwnedObjectOptions<T>, 'exact' | 'desired'>,
  present: unknown,
): FieldPath[] {
  return exact.flatMap((field) => surplusAt(field.split('.'), present, desired, []));
}

function surplusAt(
  [step, ...rest]: readonly string[],
  actual: unknown,
  desired: unknown,
  at: FieldPath,
): FieldPath[] {
  if (step === undefined) return surplusBelow(actual, desired, at);
  if (step !== '*') {
    return surplusAt(rest, valueAt(actual, [step]), valueAt(desired, [step]), [...at, step]);
  }
  if (!Array.isArray(actual) || !Array.isArray(desired)) return [];
  return actual.flatMap((element: unknown, index) => {
    const counterpart: unknown = desired.find((item: unknown) => covers(element, item));
    return counterpart === undefined ? [] : surplusAt(rest, element, counterpart, [...at, index]);
  });
}

function surplusBelow(actual: unknown, desired: unknown, at: FieldPath): FieldPath[] {
  if (actual === undefined || actual === null) return [];
  if (desired === undefined) return [at];
  if (Array.isArray(actual) && Array.isArray(desired)) {
    const isWanted = (element: unknown) => desired.some((item: unknown) => covers(element, item));
    return actual
      .flatMap((element, index) => (isWanted(element) ? [] : [[...at, index]]))
      .toReversed();
  }
  if (!isRecord(actual) || !isRecord(desired)) return [];
  return Object.keys(actual).flatMap((name) =>
    surplusBelow(memberOf(actual, name), memberOf(desired, name), [...at, name]),
  );
}

/** Returns whether a patch with the uid of an object failed because the object is gone, or another one has its name. */
export function isReplaced(error: unknown): boolean {
  return (
    isApiError(error, 'notFound') ||
    (isApiError(error, 'invalid') &&
      (error.details?.causes?.some(({ field }) => field === 'metadata.uid') ?? false))
  );
}

/**
 * Returns whether `present` belongs to a previous owner of the same name: the garbage collector is about
 * to delete it.
 */
function isOfPrevious(
  present: DeepReadonly<KubernetesObject>,
  owner: DeepReadonly<KubernetesObject>,
): boolean {
  const reference = controllerOf(present);
  return (
    reference?.kind === owner.kind &&
    reference.name === owner.metadata.name &&
    apiGroupOf(reference.apiVersion) === apiGroupOf(owner.apiVersion)
  );
}

function shared<T extends KubernetesObject>(object: T): DeepReadonly<T>;
function shared(object: unknown): unknown {
  return object;
}
