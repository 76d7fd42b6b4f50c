import { equalJson } from '../../api/equal.ts';
import { fieldError } from '../../api/field-error.ts';
import { copyJson } from '../json/copy-json.ts';
import { deleteFields } from '../objects/field-tree.ts';
import { validateKubeFinalizers } from '../objects/finalizers.ts';
import { validateMetadataUpdate } from '../objects/object-metadata.ts';
import type {
  ApiObject,
  ResourceDefinition,
  StoredObject,
} from '../objects/resource-definition.ts';
import { shallowCopy } from '../objects/resource-definition.ts';
import { StatusError, conflict, internalError, invalidError } from '../objects/status-error.ts';
import { isOfType } from '../request/negotiation.ts';
import { pause } from '../request/pause.ts';
import { prune } from '../schema/pruning.ts';
import type { WriteRequest } from './hook-context.ts';
import { hookContext } from './hook-context.ts';
import { toStoredKind } from './stored-kind.ts';
import { addWarnings, errorsOfKind, requireValid, validateObject } from './validation.ts';

/**
 * Returns the object to store in place of `previous`: with the fields of `draft` that the main resource or subresource
 * can change, complete and valid. Upstream: `rest.BeforeUpdate`.
 *
 * Rejects with a `StatusError`: 409 if `draft` has an outdated resourceVersion, 422 if it is invalid
 */
export async function beforeUpdate(
  request: WriteRequest,
  previous: StoredObject,
  draft: ApiObject,
): Promise<ApiObject> {
  const { definition, info } = request;
  const { hooks, storedAs, disabledFields } = definition;
  const context = hookContext(request);
  hooks?.requireRights?.(draft, previous, context);
  requireCurrent(definition, draft, previous);
  if (storedAs) {
    const before = storedAs.fromStored(previous);
    const own = resetFields(draft, before, definition, info.subresource);
    const ofStoredKind = { ...request, definition: storedAs.definition };
    return beforeUpdate(ofStoredKind, previous, toStoredKind(request, storedAs, own, before));
  }
  if (draft.apiVersion === '') {
    throw internalError("Object 'apiVersion' is missing in 'object has no apiVersion field'");
  }
  const own = resetFields(draft, previous, definition, info.subresource);
  const object = { ...own, metadata: withSystemMetadata(own, previous, definition) };
  await pause(request, previous);
  if (disabledFields) deleteFields(object, disabledFields);
  hooks?.prepareForUpdate?.(object, previous, context);
  shareEqualFields(object, previous);
  await pause(request, previous);
  if (definition.tracksGeneration && isSpecChanged(object, previous, definition)) {
    object.metadata.generation = (previous.metadata.generation ?? 0) + 1;
  }
  const ofMetadata = validateMetadataUpdate(
    object.metadata,
    previous.metadata,
    definition,
    info.subresource,
  );
  await pause(request, previous);
  const bySchema = validateObject(request, object, previous, ofMetadata.ofRules);
  await pause(request, previous);
  const ofKind = await errorsOfKind(request, object, previous);
  await pause(request, previous);
  requireValid(definition, object, [
    ...ofKind,
    ...(hooks?.validateUpdate?.(object, previous, info.subresource) ?? []),
    ...ofMetadata.errors,
    ...(isOfType(object, definition) ? ofMetadata.ofRules : []),
    ...validateKubeFinalizers(object.metadata, definition, info.subresource),
    ...bySchema,
  ]);
  await pause(request, previous);
  const unauthorized = hooks?.authorize?.(object, previous, context) ?? [];
  requireValid(definition, object, unauthorized);
  await pause(request, previous);
  addWarnings(request, object, previous);
  return object;
}

/** @throws {StatusError} 500 if a resourceVersion is not a number */
export function requireParsable(resourceVersion: string = ''): void {
  if (/^\d*$/.test(resourceVersion)) return;
  throw StatusError.failure({
    code: 500,
    message: `strconv.ParseUint: parsing ${JSON.stringify(resourceVersion)}: invalid syntax`,
  });
}

/** Checks that the uid and the resourceVersion of the draft, if it has them, are those of the stored object. */
export function requireCurrent(
  definition: ResourceDefinition,
  draft: ApiObject,
  { metadata }: StoredObject,
): void {
  const { resourceVersion } = draft.metadata;
  const { group, plural, custom, unconditionalUpdate = !custom } = definition;
  if ((!resourceVersion || resourceVersion === '0') && !unconditionalUpdate) {
    // As upstream, which names the resource here instead of the kind.
    throw invalidError({ group, kind: plural }, metadata.name, [
      fieldError.invalid('metadata.resourceVersion', 0, 'must be specified for an update'),
    ]);
  }
  requireParsable(resourceVersion);
  if (resourceVersion && resourceVersion !== '0' && resourceVersion !== metadata.resourceVersion) {
    throw conflict(definition, metadata.name);
  }
}

/** Takes all fields that the path cannot write from `previous`. Hooks may change the result. */
function resetFields(
  draft: ApiObject,
  previous: StoredObject,
  definition: ResourceDefinition,
  subresource: string | undefined,
): ApiObject {
  const { subresources, custom, hooks, schema, statusKeeps = [] } = definition;
  const own = <T>(value: T) => (hooks ? copyJson(value) : value);
  const kept = () => {
    const { managedFields, resourceVersion } = draft.metadata;
    const { managedFields: _, ...metadata } = shallowCopy(previous).metadata;
    return { ...metadata, resourceVersion, ...(managedFields && { managedFields }) };
  };
  if (subresource === 'status' || subresource === 'approval') {
    const metadata = statusKeeps === 'metadata' ? kept() : { ...draft.metadata };
    if (statusKeeps !== 'metadata') {
      for (const field of statusKeeps) keep(metadata, previous.metadata, field);
    }
    const { status: _, ...rest } = previous;
    const object: ApiObject = { ...own(rest), metadata };
    keep(object, draft, 'status');
    // The decoder prunes only objects of the kind and version.
    if (custom && schema && !isOfType(draft, definition)) prune(object, schema);
    return object;
  }
  if (subresource === 'ephemeralcontainers' || subresource === 'resize') {
    const metadata = kept();
    keep(metadata, draft.metadata, 'generateName');
    // The hook of the kind takes the other fields from `previous`.
    return own({ ...previous, metadata, spec: draft['spec'] });
  }
  if (subresources.status && subresource === undefined) {
    const object = { ...draft };
    keep(object, own({ status: previous['status'] }), 'status');
    return object;
  }
  return draft;
}

/** Keeps the metadata that clients cannot set. */
function withSystemMetadata(
  draft: ApiObject,
  { metadata: previous }: StoredObject,
  { tracksGeneration }: ResourceDefinition,
): ApiObject['metadata'] {
  const metadata = { ...draft.metadata };
  metadata.uid ||= previous.uid;
  metadata.creationTimestamp = previous.creationTimestamp;
  delete metadata.generation;
  if (previous.generation !== undefined) metadata.generation = previous.generation;
  else if (tracksGeneration) metadata.generation = 1;
  if (previous.deletionTimestamp !== undefined) {
    metadata.deletionTimestamp ??= previous.deletionTimestamp;
  }
  if (previous.deletionGracePeriodSeconds !== undefined) {
    metadata.deletionGracePeriodSeconds ??= previous.deletionGracePeriodSeconds;
  }
  // Kinds with conditional updates were rejected before if they have none.
  metadata.resourceVersion = previous.resourceVersion;
  return metadata;
}

/** Reuses equal values of `previous`, so that they are stored once and compared by identity. */
function shareEqualFields(object: ApiObject, previous: StoredObject): void {
  for (const [field, value] of Object.entries(previous)) {
    if (field !== 'metadata' && equalJson(object[field], value)) object[field] = value;
  }
}

/** Copies a field from `source`, or removes it if `source` does not have it. */
function keep<T extends object>(target: T, source: object, field: keyof T & string): void {
  const value: unknown = Object.hasOwn(source, field)
    ? (source as Record<string, unknown>)[field]
    : undefined;
  if (value === undefined) delete target[field];
  else Object.assign(target, { [field]: value });
}

/** `metadata.generation` counts changes outside of metadata, and of the status if `/status` writes it. */
function isSpecChanged(
  object: StoredObject,
  previous: StoredObject,
  { custom, subresources }: ResourceDefinition,
): boolean {
  const specOf = ({ metadata: _metadata, apiVersion: _version, status, ...rest }: StoredObject) =>
    custom && !subresources.status ? { ...rest, status } : rest;
  return !equalJson(specOf(object), specOf(previous));
}
