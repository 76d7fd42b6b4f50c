import { own } from '../../util/json-value.ts';
import { Memo } from '../../util/memo.ts';
import { isRecord } from '../../util/values.ts';
import type { StoredObject } from './resource-definition.ts';

const segments = new Memo(1000, (path): readonly string[] => path.split('.').filter(Boolean));

/** Returns the segments of a simple path in a CRD: `.spec.replicas`. */
export function fieldPath(path: string): readonly string[] {
  return segments.get(path);
}

/** Returns the value at a path, or undefined if it is absent. */
export function valueAtPath(value: unknown, path: readonly string[]): unknown {
  let current = value;
  for (const field of path) {
    if (!isRecord(current)) return undefined;
    current = own(current, field);
  }
  return current;
}

/** The text of a scalar; `absent` for other values. */
export function textOf(value: unknown, absent: string): string {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? String(value)
    : absent;
}

/** Returns functions that read the scalars at these paths as texts, for field selectors. */
export function fieldsAt(
  ...paths: readonly string[]
): Readonly<Record<string, (object: StoredObject) => string>> {
  return Object.fromEntries(
    paths.map(fieldPath).map((path) => {
      return [path.join('.'), (object: StoredObject) => textOf(valueAtPath(object, path), '')];
    }),
  );
}

/** Returns a copy of `object` with another value at the path. Shares all other parts. */
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
