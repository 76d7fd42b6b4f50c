import { objectIn, objectsIn, textIn } from '../../util/json-value.ts';
import { shallowCopy } from '../objects/resource-definition.ts';
import { equalJson } from '../../api/equal.ts';
import { copyJson } from '../json/copy-json.ts';
import { isOfType } from '../request/negotiation.ts';
import type {
  ApiObject,
  ResourceDefinition,
  StoredObject,
} from '../objects/resource-definition.ts';
import { applyDefaults } from '../schema/defaulting.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { prune } from '../schema/pruning.ts';

/** Marks a write whose managedFields were computed by an apply. */
export type AppliedFields = 'applied';

/** Takes all fields that the path cannot write from `previous`. Hooks may change the result. */
export function resetFields(
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
    const metadata = custom ? kept() : { ...draft.metadata };
    for (const field of statusKeeps) keep(metadata, previous.metadata, field);
    const { status: _, ...rest } = previous;
    const object: ApiObject = { ...own(rest), metadata };
    keep(object, draft, 'status');
    // The decoder prunes only objects of the kind and version.
    if (custom && schema && !isOfType(draft, definition)) prune(object, schema);
    return object;
  }
  if (subresource === 'ephemeralcontainers' || subresource === 'resize') {
    const before = objectIn(previous, 'spec') ?? {};
    const after = objectIn(draft, 'spec') ?? {};
    const { ephemeralContainers } = after;
    const spec =
      subresource === 'resize'
        ? { ...before, containers: resized(before, after) }
        : { ...before, ...(ephemeralContainers !== undefined && { ephemeralContainers }) };
    return own({ ...previous, metadata: kept(), spec });
  }
  if (subresources.status && subresource === undefined) {
    const object = { ...draft };
    keep(object, own({ status: previous['status'] }), 'status');
    return object;
  }
  return draft;
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

/**
 * Returns the object with its defaults. Hooks may change it: the result of schema functions shares
 * parts with the schema, so it is copied.
 */
export function withDefaults(
  object: ApiObject,
  { schema, hooks, custom, kind }: ResourceDefinition,
  applied?: AppliedFields,
): ApiObject {
  // As upstream, only the decoders of requests and stored objects remove the nulls of custom resources.
  const defaulted =
    schema && object.kind === kind
      ? applyDefaults(object, schema, custom && applied !== undefined)
      : object;
  if (!hooks) return defaulted === object ? object : { ...defaulted, metadata: object.metadata };
  const own = copyJson(defaulted);
  hooks.applyDefaults?.(own);
  return own;
}

/** Returns the containers of a Pod with the resources of the same containers in another spec. */
function resized(before: JsonObject, after: JsonObject): readonly JsonObject[] {
  const wanted = new Map(
    objectsIn(after, 'containers').map((container) => [textIn(container, 'name'), container]),
  );
  return objectsIn(before, 'containers').map((container) => {
    const { resources } = wanted.get(textIn(container, 'name')) ?? {};
    return resources === undefined ? container : Object.assign({}, container, { resources });
  });
}

/** Keeps the metadata that clients cannot set. */
export function withSystemMetadata(
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
export function shareEqualFields(object: ApiObject, previous: StoredObject): void {
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
export function isSpecChanged(
  object: StoredObject,
  previous: StoredObject,
  { custom, subresources }: ResourceDefinition,
): boolean {
  const substance = ({
    metadata: _metadata,
    apiVersion: _version,
    status,
    ...rest
  }: StoredObject) => (custom && !subresources.status ? { ...rest, status } : rest);
  return !equalJson(substance(object), substance(previous));
}

/** Compares objects without managedFields. Shares equal parts apart from the metadata. */
export function isUnchanged(next: StoredObject, previous: StoredObject): boolean {
  const { metadata: now, ...rest } = next;
  const { metadata: before, ...formerRest } = previous;
  return equalJson(rest, formerRest) && equalJson(withoutTimes(now), withoutTimes(before));
}

function withoutTimes({ managedFields, ...metadata }: StoredObject['metadata']): object {
  if (!managedFields) return metadata;
  return { ...metadata, managedFields: managedFields.map(({ time: _time, ...entry }) => entry) };
}
