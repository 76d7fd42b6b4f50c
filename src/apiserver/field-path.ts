import { own } from './schema/json-value.ts';
import { isRecord } from '../util/values.ts';

/** The segments of a path of plain fields, as CRDs write it: `.spec.replicas`. */
export function fieldPath(path: string): readonly string[] {
  return path.split('.').filter(Boolean);
}

/** The value at a path; undefined where it leads nowhere. */
export function valueAt(value: unknown, path: readonly string[]): unknown {
  let current = value;
  for (const field of path) {
    if (!isRecord(current)) return undefined;
    current = own(current, field);
  }
  return current;
}

/** A copy of `object` with another value at the path; what is not on the path is shared. */
export function withValueAt<T extends Readonly<Record<string, unknown>>>(
  object: T,
  [field, ...rest]: readonly string[],
  value: unknown,
): T {
  if (field === undefined) return object;
  const inner = own(object, field);
  const next = rest.length === 0 ? value : withValueAt(isRecord(inner) ? inner : {}, rest, value);
  return { ...object, [field]: next };
}
