import { copyJson } from '../json/copy-json.ts';
import type { ApiObject, ResourceDefinition } from '../objects/resource-definition.ts';
import { applyDefaults } from '../schema/defaulting.ts';

/**
 * Returns the object with its defaults. Hooks may change it: the result of schema functions shares
 * parts with the schema, so it is copied.
 *
 * @param nulls whether a custom resource keeps null, which only decoders of requests and stored objects remove
 */
export function withDefaults(
  object: ApiObject,
  { schema, hooks, custom, kind }: ResourceDefinition,
  nulls?: 'keepNulls',
): ApiObject {
  const defaulted =
    schema && object.kind === kind
      ? applyDefaults(object, schema, custom && nulls === 'keepNulls')
      : object;
  if (!hooks) return defaulted === object ? object : { ...defaulted, metadata: object.metadata };
  const own = copyJson(defaulted);
  hooks.applyDefaults?.(own);
  return own;
}
