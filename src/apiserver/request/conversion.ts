import { shallowCopy } from '../objects/resource-definition.ts';
import type { Registry } from '../objects/registry.ts';
import type { ResourceDefinition, StoredObject } from '../objects/resource-definition.ts';
import { apiVersionIn, toRequestedVersion } from './negotiation.ts';

/** Returns the other versions and representations of the same stored objects. */
export function equivalentsOf(
  definition: ResourceDefinition,
  registry: Registry,
): readonly ResourceDefinition[] {
  const { group, plural } = definition.storedAs?.definition ?? definition;
  return registry
    .groups()
    .flatMap(({ versions }) => versions.flatMap(({ definitions }) => definitions))
    .filter((each) => {
      const stored = each.storedAs?.definition ?? each;
      return each !== definition && stored.group === group && stored.plural === plural;
    });
}

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
