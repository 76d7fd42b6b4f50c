import { equalJson } from './equal.ts';
import { isContainer } from '../util/json-value.ts';

/** Path of a field: names of members and indexes of list elements. */
export type FieldPath = readonly (string | number)[];

/** Maximum depth of a path. Values below it are compared as a whole. */
const MAX_DEPTH = 16;

/** Members of `metadata` that every write changes. */
const IGNORED_METADATA: ReadonlySet<string> = new Set([
  'resourceVersion',
  'generation',
  'managedFields',
  'selfLink',
]);

/**
 * Returns the paths of at most `limit` fields that differ, without the metadata that every write
 * changes. A path leads to a single value, or to a list whose length changed.
 */
export function changedPaths(before: unknown, after: unknown, limit: number): FieldPath[] {
  const found: FieldPath[] = [];
  collect(before, after, [], found, limit);
  return found;
}

/** @param path shared by the whole walk, because most visited values are equal */
function collect(
  before: unknown,
  after: unknown,
  path: (string | number)[],
  found: FieldPath[],
  limit: number,
): void {
  if (!isContainer(before) || !isContainer(after) || path.length >= MAX_DEPTH) {
    if (!equalJson(before, after)) found.push([...path]);
  } else if (Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
    for (let index = 0; index < after.length; index++) {
      descend(index, before[index], after[index], path, found, limit);
    }
  } else if (Array.isArray(before) || Array.isArray(after)) {
    found.push([...path]);
  } else {
    for (const name of Object.keys(after)) {
      descend(name, member(before, name), member(after, name), path, found, limit);
    }
    for (const name of Object.keys(before)) {
      if (Object.hasOwn(after, name)) continue;
      descend(name, member(before, name), undefined, path, found, limit);
    }
  }
}

function descend(
  step: string | number,
  before: unknown,
  after: unknown,
  path: (string | number)[],
  found: FieldPath[],
  limit: number,
): void {
  if (before === after || found.length >= limit) return;
  if (path.length === 1 && path[0] === 'metadata' && IGNORED_METADATA.has(String(step))) return;
  path.push(step);
  collect(before, after, path, found, limit);
  path.pop();
}

/** Returns the value at `path`, or undefined. */
export function valueAt(object: unknown, path: FieldPath): unknown {
  let value = object;
  for (const step of path) value = member(value, step);
  return value;
}

/** Returns whether `path` is `ancestor` or below it. */
export function isWithin(path: FieldPath, ancestor: FieldPath): boolean {
  return ancestor.length <= path.length && ancestor.every((step, at) => path[at] === step);
}

/** Maximum lengths of a name and of a path in messages, because users choose the names. */
const MAX_NAME_LENGTH = 80;
const MAX_PATH_LENGTH = 240;

/** Formats a path like kubectl's JSONPath: `.metadata.labels["example.com/team"]`, `.spec.ports[0].port`. */
export function formatPath(path: FieldPath): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else if (/^[A-Za-z_][\w-]{0,79}$/.test(step)) text += `.${step}`;
    else text += `[${JSON.stringify(truncate(step, MAX_NAME_LENGTH))}]`;
  }
  return truncate(text, MAX_PATH_LENGTH) || '.';
}

/** Returns the JSON pointer of a path, as JSON patches have it. */
export function toJsonPointer(path: FieldPath): string {
  return path
    .map((step) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`)
    .join('');
}

function truncate(text: string, maxLength: number): string {
  return text.length > maxLength ? `${text.slice(0, maxLength)}…` : text;
}

function member(value: unknown, step: string | number): unknown {
  if (!isContainer(value)) return undefined;
  return Object.hasOwn(value, step) ? Reflect.get(value, step) : undefined;
}
