import type { ApiObject, StoredObject } from '../objects/resource-definition.ts';
import { badRequest, conflict } from '../objects/status-error.ts';
import type { Call } from './call.ts';

/** @throws {StatusError} 400 if the object has another namespace or name than the path */
export function requireIdentity(call: Call, object: ApiObject): void {
  placeObject(call, object);
  requireName(call, object.metadata.name);
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

/** @throws {StatusError} 400 if the name is not that of the path */
export function requireName({ info }: Call, name: string = ''): void {
  if (name === info.name) return;
  throw badRequest(
    name === ''
      ? `the name of the object (${info.name} based on URL) was undeterminable: name must be provided`
      : `the name of the object (${name}) does not match the name on the URL (${info.name})`,
  );
}

/** @throws {StatusError} 409 if the object was deleted after it was read, even if it was created again */
export function requireSameObject(
  { definition, info }: Call,
  { metadata }: ApiObject,
  { name, uid }: Pick<StoredObject['metadata'], 'name' | 'uid'>,
): void {
  if (!metadata.uid || metadata.uid === uid) return;
  const path = [definition.custom && definition.group, definition.plural, info.namespace, info.name]
    .filter(Boolean)
    .join('/');
  throw conflict(
    definition,
    name,
    `StorageError: invalid object, Code: 4, Key: /registry/${path}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: ${metadata.uid}, UID in object meta: ${uid}`,
  );
}
