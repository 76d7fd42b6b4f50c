import type { ApiObject, StoredAs, StoredObject } from '../objects/resource-definition.ts';
import { withDefaults } from './defaults.ts';
import type { WriteRequest } from './hook-context.ts';
import { requireValid, validateObject } from './validation.ts';

/**
 * Validates an object of a representation, such as an Event of events.k8s.io, and returns it as the kind that is stored.
 *
 * @throws {StatusError} 422 if it is invalid
 */
export function toStoredKind(
  request: WriteRequest,
  { definition: stored, toStored }: StoredAs,
  object: ApiObject,
  previous?: StoredObject,
): ApiObject {
  requireValid(stored, object, [
    ...validateObject(request, object),
    ...(request.definition.hooks?.validate?.(object, previous) ?? []),
  ]);
  return withDefaults(toStored(object), stored);
}
