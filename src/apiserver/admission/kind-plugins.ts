import { copyJson } from '../json/copy-json.ts';
import type {
  AdmissionHookContext,
  ApiObject,
  StoredObject,
} from '../objects/resource-definition.ts';
import { forbiddenError } from '../objects/status-error.ts';
import type { ObjectStore } from '../storage/object-store.ts';
import type { Attributes } from './attributes.ts';
import { shownName } from './policies.ts';

/**
 * Returns a copy of the object with the changes of the admission plugins of its kind.
 *
 * @throws {StatusError} 403 if one of them rejects it
 */
export function withPluginsOfKind(
  attributes: Attributes,
  store: ObjectStore,
): StoredObject | undefined {
  const { object, oldObject, definition, subresource } = attributes;
  const admit = definition.hooks?.admit;
  if (!object || !admit || subresource !== '') return object;
  const next = copyJson(object) as ApiObject;
  admit(next, oldObject, hookContext(attributes, store));
  return next;
}

/** @throws {StatusError} 403 if an admission plugin of the kind rejects a complete and valid object */
export function requireByPluginsOfKind(attributes: Attributes, store: ObjectStore): void {
  const { object, oldObject, operation, definition, subresource } = attributes;
  if (!object || operation === 'DELETE' || subresource !== '') return;
  definition.hooks?.requireAdmitted?.(object, oldObject, hookContext(attributes, store));
}

function hookContext(attributes: Attributes, store: ObjectStore): AdmissionHookContext {
  return {
    list: (resource) => store.collection(resource).list(),
    forbidden: (why) => forbiddenError(attributes.definition, shownName(attributes), why),
  };
}
