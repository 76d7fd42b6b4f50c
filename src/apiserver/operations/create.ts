import type { MaybePromise } from '../../util/maybe-promise.ts';
import { whenReady } from '../../util/maybe-promise.ts';
import type { Answer, Call } from './call.ts';
import { copyJson } from '../json/copy-json.ts';
import { decodeBody } from '../request/object-decoder.ts';
import { withoutDuplicateOwners } from '../objects/object-metadata.ts';
import { pause } from '../request/pause.ts';
import { generatedName } from '../../api/object-names.ts';
import type { ApiObject, StoredObject } from '../objects/resource-definition.ts';
import { StatusError, badRequest, forbidden, notFound } from '../objects/status-error.ts';
import type { AppliedFields } from './successor.ts';
import { typesFirst } from './validation.ts';
import { admittedDraft, storeNew } from './write.ts';

const NAME_ATTEMPTS = 8;

export function create(call: Call): MaybePromise<Answer> {
  const stored = whenReady(decodeBody(call), (object) =>
    typesFirst(call, object, () => createNamed(call, withoutDuplicateOwners(call, object, 'sent'))),
  );
  return whenReady(stored, created);
}

/**
 * Stores a new object in the namespace of the path, with its own name or a generated one.
 *
 * @throws {StatusError} 403 or 404 if its CRD or namespace accepts no new objects
 */
export function createNamed(
  call: Call,
  object: ApiObject,
  applied?: AppliedFields,
): MaybePromise<StoredObject> {
  placeObject(call, object);
  requireOpen(call, object.metadata.name);
  requireNamespace(call, object.metadata.name);
  return whenReady(admittedDraft(call, object, applied), (draft) => {
    const { generateName, name } = draft.metadata;
    return whenReady(pause(call), () =>
      name || !generateName ? storeNew(call, draft) : storeGenerated(call, draft, generateName),
    );
  });
}

/** Stores an object under a generated name, and tries other names if it is taken. */
function storeGenerated(
  call: Call,
  draft: ApiObject,
  generateName: string,
  attempt: number = 1,
): MaybePromise<StoredObject> {
  const again = (error: unknown) => {
    const taken = error instanceof StatusError && error.status.reason === 'AlreadyExists';
    if (!taken || attempt === NAME_ATTEMPTS) throw error;
    return storeGenerated(call, draft, generateName, attempt + 1);
  };
  const metadata = { ...draft.metadata, name: generatedName(generateName, call.backend.random) };
  try {
    // Hooks add what follows from the name.
    const stored = storeNew(call, copyJson({ ...draft, metadata }));
    return stored instanceof Promise ? stored.catch(again) : stored;
  } catch (error) {
    return again(error);
  }
}

/** Returns the answer for an object that was created. */
export function created(object: StoredObject): Answer {
  return { kind: 'object', code: 201, object };
}

/**
 * Sets the namespace of an object to that of the path; an object of the cluster loses it.
 *
 * @throws {StatusError} 400 if the object has another namespace than the path
 */
export function placeObject({ info, definition }: Call, { metadata }: ApiObject): void {
  if (!definition.namespaced) {
    delete metadata.namespace;
    return;
  }
  if (metadata.namespace && metadata.namespace !== info.namespace) {
    throw badRequest(
      'the namespace of the provided object does not match the namespace sent on the request',
    );
  }
  if (info.namespace !== undefined) metadata.namespace = info.namespace;
}

/** @throws {StatusError} 403 if the CRD is being deleted */
function requireOpen({ definition }: Call, name: string): void {
  if (!definition.terminating) return;
  throw forbidden(
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
  if (!namespace) throw notFound(namespaces, info.namespace);
  if (namespace.metadata.deletionTimestamp === undefined) return;
  throw forbidden(
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
