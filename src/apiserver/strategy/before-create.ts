import { timestamp } from '../../api/conditions.ts';
import { deleteFields } from '../objects/field-tree.ts';
import { validateKubeFinalizers } from '../objects/finalizers.ts';
import { validateMetadata } from '../objects/object-metadata.ts';
import type { ApiObject, ResourceDefinition } from '../objects/resource-definition.ts';
import { pause } from '../request/pause.ts';
import { withDefaults } from './defaults.ts';
import type { WriteRequest } from './hook-context.ts';
import { hookContext } from './hook-context.ts';
import { toStoredKind } from './stored-kind.ts';
import { addWarnings, errorsOfKind, requireValid, validateObject } from './validation.ts';

/**
 * Returns the object to store for a new draft: with complete metadata, without the fields that the client does not
 * decide, and valid. Upstream: `rest.BeforeCreate`.
 *
 * Rejects with a `StatusError`: 422 if it is invalid
 */
export async function beforeCreate(request: WriteRequest, draft: ApiObject): Promise<ApiObject> {
  const { definition } = request;
  const { storedAs } = definition;
  if (storedAs) {
    const own = toStoredKind(request, storedAs, withoutStatus(draft, definition));
    return beforeCreate({ ...request, definition: storedAs.definition }, own);
  }
  const context = hookContext(request);
  definition.hooks?.requireRights?.(draft, undefined, context);
  const { clock, uid } = request.backend;
  const { hooks, tracksGeneration, namespaced, disabledFields } = definition;
  const {
    nameFormat = 'dns1123Subdomain',
    prefixFormat,
    validatesMetadataLast: isLast,
  } = definition;
  const own = definition.custom
    ? withDefaults(withoutStatus(draft, definition), definition, 'keepNulls')
    : draft;
  const object: ApiObject = {
    ...own,
    metadata: { ...draft.metadata, uid: uid(), creationTimestamp: timestamp(clock.now()) },
  };
  delete object.metadata.selfLink;
  if (tracksGeneration) object.metadata.generation = 1;
  if (disabledFields) deleteFields(object, disabledFields);
  hooks?.prepareForCreate?.(object, context);
  await pause(request);
  const ofMetadata = validateMetadata(object.metadata, namespaced, nameFormat, prefixFormat);
  await pause(request);
  const bySchema = validateObject(request, object, undefined, ofMetadata);
  await pause(request);
  const ofKind = await errorsOfKind(request, object);
  requireValid(definition, object, [
    ...(isLast && ofKind.length > 0 ? [] : ofMetadata),
    ...validateKubeFinalizers(object.metadata, definition),
    ...ofKind,
    ...bySchema,
  ]);
  await pause(request);
  const unauthorized = hooks?.authorize?.(object, undefined, context) ?? [];
  requireValid(definition, object, unauthorized);
  await pause(request);
  addWarnings(request, object, undefined);
  return object;
}

/** Drops the status of a new object if only `/status` writes it. */
export function withoutStatus(
  draft: ApiObject,
  { subresources, keepsStatus }: ResourceDefinition,
): ApiObject {
  if (!subresources.status || keepsStatus || draft['status'] === undefined) return draft;
  const { status: _status, ...rest } = draft;
  return rest;
}
