import { equalJson } from './equal.ts';

/** Where a field is: names of members and positions in lists, from the object down. */
export type FieldPath = readonly (string | number)[];

/** Below this depth differences are not told apart. */
const DEEPEST = 16;

/** Members of `metadata` that every write changes. */
const BOOKKEEPING: ReadonlySet<string> = new Set([
  'resourceVersion',
  'generation',
  'managedFields',
  'selfLink',
]);

/**
 * The fields in which two states of an object differ, at most `limit` of them, the server's own
 * bookkeeping left out. Each is as small as can be: a value, or a list that became longer or shorter.
 */
export function changedPaths(before: unknown, after: unknown, limit: number): FieldPath[] {
  const found: FieldPath[] = [];
  collect(before, after, [], found, limit);
  return found;
}

/** @param path where both are: one stack for the whole walk, since most of what it passes is equal */
function collect(
  before: unknown,
  after: unknown,
  path: (string | number)[],
  found: FieldPath[],
  limit: number,
): void {
  if (!isContainer(before) || !isContainer(after) || path.length >= DEEPEST) {
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
  if (path.length === 1 && path[0] === 'metadata' && BOOKKEEPING.has(String(step))) return;
  path.push(step);
  collect(before, after, path, found, limit);
  path.pop();
}

/** The value at `path`, undefined where there is none. */
export function valueAt(object: unknown, path: FieldPath): unknown {
  let value = object;
  for (const step of path) value = member(value, step);
  return value;
}

/** True if `path` is `ancestor`, or a part of it. */
export function isWithin(path: FieldPath, ancestor: FieldPath): boolean {
  return ancestor.length <= path.length && ancestor.every((step, at) => path[at] === step);
}

/** Names are the object's author's: so much of one is shown, and so much of a path. */
const LONGEST_NAME = 80;
const LONGEST_PATH = 240;

/** As kubectl's JSONPath has it: `.metadata.labels["example.com/team"]`, `.spec.ports[0].port`. */
export function formatPath(path: FieldPath): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else if (/^[A-Za-z_][\w-]{0,79}$/.test(step)) text += `.${step}`;
    else text += `[${JSON.stringify(cut(step, LONGEST_NAME))}]`;
  }
  return cut(text, LONGEST_PATH) || '.';
}

function cut(text: string, longest: number): string {
  return text.length > longest ? `${text.slice(0, longest)}…` : text;
}

function member(value: unknown, step: string | number): unknown {
  if (!isContainer(value)) return undefined;
  return Object.hasOwn(value, step) ? Reflect.get(value, step) : undefined;
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
