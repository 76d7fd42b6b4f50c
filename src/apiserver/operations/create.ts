import type { Answer, Call } from './call.ts';
import { copyJson } from '../json/copy-json.ts';
import { decodeBody } from '../request/object-decoder.ts';
import { withoutDuplicateOwners } from '../objects/object-metadata.ts';
import { pause } from '../request/pause.ts';
import { generatedName } from '../../api/object-names.ts';
import type { ApiObject, StoredObject } from '../objects/resource-definition.ts';
import { StatusError, forbiddenError, notFoundError } from '../objects/status-error.ts';
import { placeObject } from './identity.ts';
import type { AppliedFields } from './prepare-update.ts';
import { requireDecodable } from './validation.ts';
import { admittedDraft, storeNew } from './write.ts';

const NAME_ATTEMPTS = 8;

export async function create(call: Call): Promise<Answer> {
  const object = await decodeBody(call);
  requireDecodable(call, object);
  return created(await createNamed(call, withoutDuplicateOwners(call, object, 'sent')));
}

/**
 * Stores a new object in the namespace of the path, with its own name or a generated one.
 *
 * @throws {StatusError} 403 or 404 if its CRD or namespace accepts no new objects
 */
export async function createNamed(
  call: Call,
  object: ApiObject,
  applied?: AppliedFields,
): Promise<StoredObject> {
  placeObject(call, object);
  requireOpen(call, object.metadata.name);
  requireNamespace(call, object.metadata.name);
  const draft = await admittedDraft(call, object, applied);
  const { generateName, name } = draft.metadata;
  await pause(call);
  return name || !generateName ? storeNew(call, draft) : storeGenerated(call, draft, generateName);
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
      return await storeNew(call, copyJson({ ...draft, metadata }));
    } catch (error) {
      const isTaken = error instanceof StatusError && error.status.reason === 'AlreadyExists';
      if (!isTaken || attempt === NAME_ATTEMPTS) throw error;
    }
  }
}

/** Returns the answer for an object that was created. */
export function created(object: StoredObject): Answer {
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
