import { shallowCopy } from '../objects/resource-definition.ts';
import type { CrdConverter } from '../crd/crd-conversion.ts';
import { apiVersionIn, toRequestedVersion } from '../request/negotiation.ts';
import type { ResourceDefinition, StoredObject } from '../objects/resource-definition.ts';

/**
 * Returns an object in another version or representation of its kind. An object of a CRD with a webhook must have
 * been converted before.
 */
export function convertedTo(
  object: StoredObject,
  from: ResourceDefinition,
  to: ResourceDefinition,
): StoredObject {
  if (from === to || object.apiVersion !== apiVersionIn(from)) return object;
  if (to.conversion) return toRequestedVersion(object, to);
  const stored = from.storedAs ? from.storedAs.toStored(shallowCopy(object)) : object;
  return to.storedAs?.fromStored(stored) ?? { ...stored, apiVersion: apiVersionIn(to) };
}

/** Converts the objects of a write to the version of a match, so that `convertedTo` returns them. */
export function prepareVersions(
  converter: CrdConverter,
  objects: readonly (StoredObject | undefined)[],
  from: ResourceDefinition,
  to: ResourceDefinition,
): Promise<void> | undefined {
  if (from === to || !to.conversion) return;
  const apiVersion = apiVersionIn(from);
  return converter.prepare(
    objects.filter((object) => object?.apiVersion === apiVersion) as readonly StoredObject[],
    to,
  );
}
