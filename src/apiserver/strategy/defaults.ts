import { copyJson } from '../json/copy-json.ts';
import type {
  ApiObject,
  ResourceDefinition,
  StoredObject,
} from '../objects/resource-definition.ts';
import { pause } from '../request/pause.ts';
import type { ReceivedRequest } from '../request/received-request.ts';
import { applyDefaults } from '../schema/defaulting.ts';

/**
 * Returns the object with its defaults.
 *
 * @param nulls whether a custom resource keeps null, which only decoders of requests and stored objects remove
 */
export function withDefaults(
  object: ApiObject,
  definition: ResourceDefinition,
  nulls?: 'keepNulls',
): ApiObject {
  return withOwnDefaults(withSchemaDefaults(object, definition, nulls), definition);
}

/**
 * Does the same in steps for the object of a request.
 *
 * @param live the stored object, if there is one
 */
export async function defaultsInSteps(
  request: ReceivedRequest,
  object: ApiObject,
  live?: StoredObject,
  nulls?: 'keepNulls',
): Promise<ApiObject> {
  await pause(request, live);
  const defaulted = withSchemaDefaults(object, request.definition, nulls);
  await pause(request, live);
  return withOwnDefaults(defaulted, request.definition);
}

function withSchemaDefaults(
  object: ApiObject,
  { schema, custom, kind, hooks }: ResourceDefinition,
  nulls: 'keepNulls' | undefined,
): ApiObject {
  if (!schema || object.kind !== kind) return object;
  const defaulted = applyDefaults(object, schema, custom && nulls === 'keepNulls');
  return defaulted === object || hooks ? defaulted : { ...defaulted, metadata: object.metadata };
}

/** Hooks may change the object: the result of schema functions shares parts with the schema, so it is copied. */
function withOwnDefaults(object: ApiObject, { hooks }: ResourceDefinition): ApiObject {
  if (!hooks) return object;
  const own = copyJson(object);
  hooks.applyDefaults?.(own);
  return own;
}
