import { isDeepStrictEqual } from 'node:util';
import { isRecord } from '../../util/values.ts';

/** A merged value, and the fields that both sides changed differently. */
export interface MergedJson {
  readonly value: Readonly<Record<string, unknown>>;
  /** `devDependencies.typescript`, with both values. The merged value has the first one. */
  readonly conflicts: readonly string[];
}

/** Applies the changes between two JSON objects to a third one, field by field. */
export function mergeJson(
  ours: Readonly<Record<string, unknown>>,
  base: Readonly<Record<string, unknown>>,
  theirs: Readonly<Record<string, unknown>>,
  path = '',
): MergedJson {
  const value: Record<string, unknown> = {};
  const conflicts: string[] = [];
  for (const key of new Set([...Object.keys(ours), ...Object.keys(theirs)])) {
    const [mine, former, next] = [ours[key], base[key], theirs[key]];
    const field = `${path}${key}`;
    if (isDeepStrictEqual(mine, next) || isDeepStrictEqual(former, next)) value[key] = mine;
    else if (isDeepStrictEqual(mine, former)) value[key] = next;
    else if (isRecord(mine) && isRecord(next)) {
      const merged = mergeJson(mine, isRecord(former) ? former : {}, next, `${field}.`);
      value[key] = merged.value;
      conflicts.push(...merged.conflicts);
    } else {
      value[key] = mine;
      conflicts.push(`${field}: ${JSON.stringify(mine)} stays, new: ${JSON.stringify(next)}`);
    }
    if (value[key] === undefined) delete value[key];
  }
  return { value, conflicts };
}
