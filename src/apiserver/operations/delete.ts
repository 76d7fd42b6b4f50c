import { attributesOf } from '../admission/admit.ts';
import type { ResourceDefinition, StoredObject } from '../objects/resource-definition.ts';
import type { DeletionOptions } from '../request/delete-options.ts';
import { deleteOptions } from '../request/delete-options.ts';
import { listOptions } from '../request/list-options.ts';
import { renderList, toRequestedVersion } from '../request/negotiation.ts';
import type { Answer, Call } from './call.ts';
import { deleteObject } from './deletion.ts';
import { guaranteedUpdate, requireUnchanged } from './guaranteed-update.ts';
import { pageOf } from './read.ts';

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
    const { object, isRemoved } = await deleteObject(call, stored, options);
    if (!isRemoved || definition.returnsDeleted) return { kind: 'object', code: 200, object };
    return { kind: 'json', code: 200, value: removedStatus(definition, object) };
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
    if (current) await deleteObject(call, current, options);
  }
  return {
    kind: 'list',
    rendering: renderList(metadata, definition, representation, backend.clock.now()),
    state: { objects, revision, history: collection.history },
  };
}

function removedStatus({ group, plural }: ResourceDefinition, { metadata }: StoredObject): object {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Success',
    details: { name: metadata.name, ...(group && { group }), kind: plural, uid: metadata.uid },
  };
}
