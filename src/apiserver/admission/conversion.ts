import { apiVersionIn } from '../negotiation.ts';
import { mutable } from '../operations/successor.ts';
import type { ResourceDefinition, StoredObject } from '../resource-definition.ts';

/** Returns an object in another version or representation of its kind. */
export function convertedTo(
  object: StoredObject,
  from: ResourceDefinition,
  to: ResourceDefinition,
): StoredObject {
  if (from === to || object.apiVersion !== apiVersionIn(from)) return object;
  const stored = from.storedAs ? from.storedAs.toStored(mutable(object)) : object;
  return to.storedAs?.fromStored(stored) ?? { ...stored, apiVersion: apiVersionIn(to) };
}
