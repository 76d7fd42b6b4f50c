import { shallowCopy } from '../objects/resource-definition.ts';
import { equalJson } from '../../api/equal.ts';
import { timestamp } from '../../api/conditions.ts';
import type { Answer, Backend, Call } from './call.ts';
import { copyJson } from '../json/copy-json.ts';
import type { DeletionOptions } from '../request/delete-options.ts';
import { deleteOptions } from '../request/delete-options.ts';
import { toRequestedVersion, renderList } from '../request/negotiation.ts';
import { deletionFinalizers } from '../objects/finalizers.ts';
import type {
  ApiObject,
  ResourceDefinition,
  StoredObject,
} from '../objects/resource-definition.ts';
import { listOptions } from '../request/list-options.ts';
import { conflict, forbiddenError } from '../objects/status-error.ts';
import { attributesOf } from '../admission/admit.ts';
import { pageOf } from './read.ts';
import { guaranteedUpdate, removeObject, requireUnchanged } from './guaranteed-update.ts';

/** The namespaces that cannot be deleted. */
const ETERNAL_NAMESPACES: ReadonlySet<string> = new Set(['default', 'kube-system', 'kube-public']);

interface Deletion {
  /** Its last state if it was removed, otherwise its state with a `deletionTimestamp`. */
  readonly object: StoredObject;
  readonly gone: boolean;
  /** Whether `removeMarked` has to remove it: a kind with grace periods first stores that this one is 0. */
  readonly isMarked?: boolean;
}

/** Warning of a deletion of Jobs that does not say what happens to their Pods. */
const JOB_WARNING =
  'child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning';

/** Reads the options of a deletion, and warns of their defaults like upstream. */
function optionsOf(call: Call): DeletionOptions {
  const options = deleteOptions(call);
  const { group, plural } = call.definition;
  const isOfJobs = group === 'batch' && plural === 'jobs';
  if (isOfJobs && options.propagationPolicy === undefined) call.warnings.push(JOB_WARNING);
  return options;
}

export async function remove(call: Call): Promise<Answer> {
  const { definition } = call;
  const options = optionsOf(call);
  return guaranteedUpdate(call, async (stored): Promise<Answer> => {
    await requireDeletable(call, stored, options);
    requireUnchanged(call, stored);
    const deletion = deleteObject(call, stored, options);
    const object = deletion.isMarked ? await removeMarked(call, deletion.object) : deletion.object;
    if (!deletion.gone || definition.returnsDeleted) return { kind: 'object', code: 200, object };
    return { kind: 'json', code: 200, value: goneStatus(definition, object) };
  });
}

/** @throws {StatusError} if admission rejects the deletion */
async function requireDeletable(
  call: Call,
  stored: StoredObject,
  { dryRun, gracePeriodSeconds, propagationPolicy }: DeletionOptions,
): Promise<void> {
  const { admission } = call.backend;
  if (!admission.mutates(call.definition) && !admission.validates(call.definition)) return;
  const options = {
    kind: 'DeleteOptions',
    apiVersion: 'meta.k8s.io/v1',
    ...(gracePeriodSeconds !== undefined && { gracePeriodSeconds }),
    ...(propagationPolicy && { propagationPolicy }),
    ...(dryRun && { dryRun: ['All'] }),
  };
  const oldObject = toRequestedVersion(stored, call.definition);
  await admission.admit({ ...attributesOf(call, 'DELETE', { oldObject, options }), dryRun });
}

/** Deletes the selected objects. As upstream, returns them as they were before. */
export async function removeCollection(call: Call): Promise<Answer> {
  const { backend, definition, info, representation } = call;
  const options = optionsOf(call);
  const page = await pageOf(call, listOptions({ ...info, verb: 'list' }, definition));
  const { objects, revision, metadata } = page;
  const collection = backend.store.collection(definition);
  await backend.converter.prepare(objects, definition);
  for (const object of objects) {
    await requireDeletable(call, object, options);
    const { namespace, name } = object.metadata;
    const current = collection.get(namespace, name);
    if (!current) continue;
    const deletion = deleteObject(call, current, options);
    if (deletion.isMarked) await removeMarked(call, deletion.object);
  }
  return {
    kind: 'list',
    rendering: renderList(metadata, definition, representation, backend.clock.now()),
    state: { objects, revision, history: collection.history },
  };
}

/**
 * Starts or finishes the deletion of one object. An object without finalizers and grace period is removed at once.
 * Otherwise it gets a `deletionTimestamp`, and is removed with its last finalizer or by a deletion with grace period 0.
 *
 * @throws {StatusError} 409 if a precondition does not hold
 */
export function deleteObject(
  { backend, definition }: Pick<Call, 'backend' | 'definition'>,
  stored: StoredObject,
  options: DeletionOptions,
): Deletion {
  requirePreconditions(definition, stored, options);
  requireMortal(definition, stored);
  const now = backend.clock.now();
  const grace = graceFor(stored, definition, options.gracePeriodSeconds, now);
  if (grace === 'pending') return { object: stored, gone: false };

  const finalizers = deletionFinalizers(
    stored.metadata.finalizers,
    definition.ownsNothing ? 'Background' : options.propagationPolicy,
    definition.orphansDependents,
  );
  const held =
    grace.seconds > 0 ||
    finalizers.length > 0 ||
    definition.hooks?.blocksRemoval?.(stored) === true;
  if (!held) {
    // A kind with grace periods first stores that this one is 0.
    const last = definition.hooks?.gracePeriodSeconds
      ? writeMark(backend, definition, stored, mark(stored, definition, grace, finalizers), options)
      : stored;
    if (options.dryRun) return { object: last, gone: true };
    if (last !== stored && backend.betweenWrites)
      return { object: last, gone: true, isMarked: true };
    return { object: removeObject(backend, definition, last), gone: true };
  }
  const marked = mark(stored, definition, grace, finalizers);
  return { object: writeMark(backend, definition, stored, marked, options), gone: false };
}

/**
 * Removes an object whose grace period of 0 is stored. As with etcd, this is a write of its own, and clients see the first one
 * before it. Returns the last state of the object.
 */
export async function removeMarked(
  { backend, definition }: Pick<Call, 'backend' | 'definition'>,
  marked: StoredObject,
): Promise<StoredObject> {
  await backend.betweenWrites?.();
  const { namespace, name, uid } = marked.metadata;
  const current = backend.store.collection(definition).get(namespace, name);
  return current?.metadata.uid === uid ? removeObject(backend, definition, current) : marked;
}

function writeMark(
  { store, observer }: Backend,
  definition: ResourceDefinition,
  stored: StoredObject,
  marked: ApiObject,
  { dryRun }: DeletionOptions,
): StoredObject {
  if (dryRun || equalJson(marked, stored)) return marked;
  const object = store.collection(definition).put(marked);
  observer.written(definition, object);
  return object;
}

interface Grace {
  readonly seconds: number;
  /** `deletionTimestamp`: the end of the grace period. */
  readonly until: string;
}

/** The grace period of the deletion; `pending` if the object is being deleted and this request changes nothing. */
function graceFor(
  stored: StoredObject,
  { hooks }: ResourceDefinition,
  requested: number | undefined,
  now: number,
): Grace | 'pending' {
  const { deletionTimestamp, deletionGracePeriodSeconds: current = 0 } = stored.metadata;
  if (deletionTimestamp === undefined) {
    const seconds = hooks?.gracePeriodSeconds?.(stored, requested) ?? 0;
    return { seconds, until: timestamp(now + seconds * 1000) };
  }
  if (current === 0) return { seconds: 0, until: deletionTimestamp };
  // A grace period that has started can only become shorter.
  if (requested === undefined || requested >= current) return 'pending';
  const until = Date.parse(deletionTimestamp) + (requested - current) * 1000;
  if (until >= now) return { seconds: requested, until: timestamp(until) };
  // It is over. The kubelet still has to finish the deletion, unless the client asks for 0 seconds.
  return { seconds: Math.min(requested, 1), until: timestamp(now) };
}

function mark(
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

function requireMortal(definition: ResourceDefinition, { metadata }: StoredObject): void {
  const { group, plural } = definition;
  if (group === '' && plural === 'namespaces' && ETERNAL_NAMESPACES.has(metadata.name)) {
    throw forbiddenError(definition, metadata.name, 'this namespace may not be deleted');
  }
}

function goneStatus({ group, plural }: ResourceDefinition, { metadata }: StoredObject): object {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Success',
    details: { name: metadata.name, ...(group && { group }), kind: plural, uid: metadata.uid },
  };
}
