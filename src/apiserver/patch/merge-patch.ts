import { Draft, requireDepth } from '../schema/json-value.ts';
import { isRecord } from '../../util/values.ts';
import type { JsonObject } from '../schema/json-value.ts';

/**
 * RFC 7386: members of `patch` replace those of `target`, objects are merged, `null` removes.
 * Returns `target` itself if nothing changes; what does not change is shared with it.
 *
 * @throws {NestingError} if the patch is nested too deeply
 */
export function mergePatch(target: unknown, patch: unknown): unknown {
  return merge(target, patch, 0);
}

function merge(target: unknown, patch: unknown, depth: number): unknown {
  if (!isRecord(patch)) return patch;
  requireDepth(depth);
  const base: JsonObject = isRecord(target) ? target : {};
  const draft = new Draft(base);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) draft.delete(key);
    else draft.set(key, merge(Object.hasOwn(base, key) ? base[key] : undefined, value, depth + 1));
  }
  return draft.value;
}
