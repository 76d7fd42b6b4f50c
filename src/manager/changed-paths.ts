import { equalJson } from '../api/equal.ts';

/** Where a field is: names of members and positions in lists, from the object down. */
export type FieldPath = readonly (string | number)[];

/** Below this depth differences are not told apart. */
const DEEPEST = 16;

/** What every write changes, and nobody means. */
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

function collect(
  before: unknown,
  after: unknown,
  path: FieldPath,
  found: FieldPath[],
  limit: number,
): void {
  if (before === after || found.length >= limit) return;
  const steps = stepsInto(before, after);
  if (!steps || path.length >= DEEPEST) {
    if (!equalJson(before, after)) found.push(path);
    return;
  }
  for (const step of steps) {
    if (path.length === 1 && path[0] === 'metadata' && BOOKKEEPING.has(String(step))) continue;
    collect(member(before, step), member(after, step), [...path, step], found, limit);
  }
}

/** What lies below two values that are of one build: objects, or lists of one length. */
function stepsInto(before: unknown, after: unknown): Iterable<string | number> | undefined {
  if (!isContainer(before) || !isContainer(after)) return undefined;
  if (Array.isArray(before) !== Array.isArray(after)) return undefined;
  if (!Array.isArray(before)) return new Set([...Object.keys(after), ...Object.keys(before)]);
  return Array.isArray(after) && before.length === after.length ? before.keys() : undefined;
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
