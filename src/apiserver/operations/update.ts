import type { Answer, Call } from './call.ts';
import { decodeBody } from '../request/object-decoder.ts';
import { withoutDuplicateOwners } from '../objects/object-metadata.ts';
import { createNamed, created } from './create.ts';
import { requireIdentity, requireSameObject } from './identity.ts';
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
