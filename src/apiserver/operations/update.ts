import { withTrackedFields } from '../managedfields/field-manager.ts';
import { withoutDuplicateOwners } from '../objects/object-metadata.ts';
import { decodeBody } from '../request/object-decoder.ts';
import { pause } from '../request/pause.ts';
import { requireParsable } from '../strategy/before-update.ts';
import { defaultsInSteps } from '../strategy/defaults.ts';
import { requireDecodable } from '../strategy/validation.ts';
import type { Answer, Call } from './call.ts';
import { createNamed, created } from './create.ts';
import { updateObject } from './guaranteed-update.ts';
import { requireIdentity, requireSameObject } from './identity.ts';

export async function update(call: Call): Promise<Answer> {
  const { definition, info } = call;
  const decoded = await decodeBody(call);
  await pause(call);
  requireDecodable(call, decoded);
  const object = withoutDuplicateOwners(call, decoded, 'sent');
  requireIdentity(call, object);
  const create = async () => {
    requireSameObject(call, object, { name: info.name ?? '', uid: '' });
    requireParsable(object.metadata.resourceVersion);
    return created(await createNamed(call, object));
  };
  return updateObject(
    call,
    async (live) => {
      requireSameObject(call, object, live.metadata);
      const complete = await defaultsInSteps(call, object, live);
      return { object: await withTrackedFields(call, complete, live) };
    },
    definition.createOnUpdate ? create : undefined,
  );
}
