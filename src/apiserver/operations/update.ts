import type { Answer, Call } from './call.ts';
import { decodeBody } from '../request/object-decoder.ts';
import { withoutDuplicateOwners } from '../objects/object-metadata.ts';
import type { ApiObject, StoredObject } from '../objects/resource-definition.ts';
import { badRequest, conflict } from '../objects/status-error.ts';
import { createNamed, created, placeObject } from './create.ts';
import { readCurrent } from './read.ts';
import { requireDecodable } from './validation.ts';
import { requireParsable, storeChange } from './write.ts';

export async function update(call: Call): Promise<Answer> {
  const decoded = await decodeBody(call);
  requireDecodable(call, decoded);
  const object = withoutDuplicateOwners(call, decoded, 'sent');
  const { definition, info, backend } = call;
  const { name = '' } = info;
  requireIdentity(call, object);
  if (definition.createOnUpdate) {
    if (!backend.store.collection(definition).get(info.namespace, name)) {
      requireSameObject(call, object, { name, uid: '' });
      requireParsable(object.metadata.resourceVersion);
      return created(await createNamed(call, object));
    }
  }
  const previous = await readCurrent(call);
  requireSameObject(call, object, previous.metadata);
  return { kind: 'object', code: 200, object: await storeChange(call, previous, object) };
}

/** @throws {StatusError} 400 if the object has another namespace or name than the path */
export function requireIdentity(call: Call, object: ApiObject): void {
  placeObject(call, object);
  requireName(call, object.metadata.name);
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
