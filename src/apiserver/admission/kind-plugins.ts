import { copyJson } from '../json/copy-json.ts';
import type { ApiObject, StoredObject } from '../objects/resource-definition.ts';
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
  admit(next, oldObject, {
    list: (resource) => store.collection(resource).list(),
    forbidden: (why) => forbiddenError(definition, shownName(attributes), why),
  });
  return next;
}
