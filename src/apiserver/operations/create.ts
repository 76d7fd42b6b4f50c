import { generatedName } from '../../api/object-names.ts';
import { copyJson } from '../json/copy-json.ts';
import { withTrackedFields } from '../managedfields/field-manager.ts';
import { withoutDuplicateOwners } from '../objects/object-metadata.ts';
import type { ApiObject, StoredObject } from '../objects/resource-definition.ts';
import { StatusError, forbiddenError, notFoundError } from '../objects/status-error.ts';
import { decodeBody } from '../request/object-decoder.ts';
import { pause } from '../request/pause.ts';
import { beforeCreate, withoutStatus } from '../strategy/before-create.ts';
import { defaultsInSteps } from '../strategy/defaults.ts';
import { requireDecodable } from '../strategy/validation.ts';
import { admitDraft, requireAdmitted } from '../admission/admit.ts';
import type { Answer, Call, ObjectAnswer } from './call.ts';
import type { UpdatedObject } from './guaranteed-update.ts';
import { insertObject, storedCall } from './guaranteed-update.ts';
import { placeObject } from './identity.ts';

const NAME_ATTEMPTS = 8;

export async function create(call: Call): Promise<Answer> {
  const object = await decodeBody(call);
  await pause(call);
  requireDecodable(call, object);
  await pause(call);
  return created(await createNamed(call, withoutDuplicateOwners(call, object, 'sent')));
}

/**
 * Stores a new object in the namespace of the path, with its own name or a generated one.
 *
 * @param applied the properties of an apply, which has set the managed fields
 * @throws {StatusError} 403 or 404 if its CRD or namespace accepts no new objects
 */
export async function createNamed(
  call: Call,
  object: ApiObject,
  applied?: Pick<UpdatedObject, 'writesEqual'>,
): Promise<StoredObject> {
  placeObject(call, object);
  requireOpen(call, object.metadata.name);
  requireNamespace(call, object.metadata.name);
  const draft = await admittedDraft(call, object, applied !== undefined);
  const { generateName, name } = draft.metadata;
  await pause(call);
  return name || !generateName
    ? storeNew(call, { ...applied, object: draft })
    : storeGenerated(call, draft, generateName);
}

/** Returns a new draft with its defaults, its managed fields and the changes of mutating admission. */
async function admittedDraft(call: Call, draft: ApiObject, isApplied: boolean): Promise<ApiObject> {
  const { definition, info } = call;
  const {
    deletionTimestamp: _timestamp,
    deletionGracePeriodSeconds: _grace,
    ...metadata
  } = draft.metadata;
  // As upstream, the status of these is dropped later.
  const isWhole = definition.custom || definition.storedAs || info.subresource === 'status';
  const own = isWhole ? draft : withoutStatus(draft, definition);
  const nulls = isApplied ? 'keepNulls' : undefined;
  const complete = await defaultsInSteps(call, { ...own, metadata }, undefined, nulls);
  if (isApplied) return admitDraft(call, complete);
  if (own === draft) return admitDraft(call, await withTrackedFields(call, complete));
  // The status matters for the managed fields: with an invalid one there are none.
  const sent = await defaultsInSteps(call, { ...draft, metadata });
  const tracked = await withTrackedFields(call, sent);
  return admitDraft(call, { ...complete, metadata: tracked.metadata });
}

/** Stores an object under a generated name, and tries other names if it is taken. */
async function storeGenerated(
  call: Call,
  draft: ApiObject,
  generateName: string,
): Promise<StoredObject> {
  for (let attempt = 1; ; attempt++) {
    const metadata = { ...draft.metadata, name: generatedName(generateName, call.backend.random) };
    try {
      // Hooks add what follows from the name.
      return await storeNew(call, { object: copyJson({ ...draft, metadata }) });
    } catch (error) {
      const isTaken = error instanceof StatusError && error.status.reason === 'AlreadyExists';
      if (!isTaken || attempt === NAME_ATTEMPTS) throw error;
    }
  }
}

/**
 * Runs validating admission for a new object and stores it.
 *
 * @throws {StatusError} 409 if the name exists, 422 if the object is invalid
 */
async function storeNew(call: Call, draft: UpdatedObject): Promise<StoredObject> {
  const object = await beforeCreate(call, draft.object);
  await requireAdmitted(call, 'CREATE', object, undefined);
  const stored = storedCall(call);
  const own = await call.backend.converter.toStorage(object, stored.definition);
  await pause(call);
  return insertObject(stored, { ...draft, object: own }, call.definition);
}

/** Returns the answer for an object that was created. */
export function created(object: StoredObject): ObjectAnswer {
  return { kind: 'object', code: 201, object };
}

/** @throws {StatusError} 403 if the CRD is being deleted */
function requireOpen({ definition }: Call, name: string): void {
  if (!definition.terminating) return;
  throw forbiddenError(
    definition,
    name,
    'create not allowed while custom resource definition is terminating',
  );
}

/** The checks of the admission plugin NamespaceLifecycle. */
function requireNamespace({ backend, definition, info }: Call, name: string = ''): void {
  if (!definition.namespaced || info.namespace === undefined) return;
  const namespaces = { group: '', plural: 'namespaces' };
  const namespace = backend.store.collection(namespaces).get(undefined, info.namespace);
  if (!namespace) throw notFoundError(namespaces, info.namespace);
  if (namespace.metadata.deletionTimestamp === undefined) return;
  throw forbiddenError(
    definition,
    name,
    `unable to create new content in namespace ${info.namespace} because it is being terminated`,
    [
      {
        reason: 'NamespaceTerminating',
        message: `namespace ${info.namespace} is being terminated`,
        field: 'metadata.namespace',
      },
    ],
  );
}
