import { equalJson } from '../api/equal.ts';
import { isRecord } from '../util/values.ts';

/** An operation of a JSON patch (RFC 6902). */
export type PatchOperation =
  | { readonly op: 'add' | 'replace'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string };

/** Indexes of an element in two versions of a list. */
type Pair = readonly [from: number, to: number];

/** Maximum number of pairs of elements that are compared in two versions of a list. */
const MAX_PAIRS = 250_000;

/**
 * Returns the operations that change `before` into `after`, both parsed from JSON. Elements that move in a list are
 * removed and added.
 */
export function jsonPatchOf(before: unknown, after: unknown): PatchOperation[] {
  const operations: PatchOperation[] = [];
  diff(before, after, '', operations);
  return operations;
}

function diff(before: unknown, after: unknown, path: string, operations: PatchOperation[]): void {
  if (isRecord(before) && isRecord(after)) diffObjects(before, after, path, operations);
  else if (Array.isArray(before) && Array.isArray(after)) {
    diffLists(before, after, path, operations);
  } else if (!equalJson(before, after)) operations.push({ op: 'replace', path, value: after });
}

type Members = Readonly<Record<string, unknown>>;

function diffObjects(
  before: Members,
  after: Members,
  path: string,
  operations: PatchOperation[],
): void {
  for (const key of Object.keys(before)) {
    const member = `${path}/${escapeToken(key)}`;
    if (Object.hasOwn(after, key)) diff(before[key], after[key], member, operations);
    else operations.push({ op: 'remove', path: member });
  }
  for (const key of Object.keys(after)) {
    if (Object.hasOwn(before, key)) continue;
    operations.push({ op: 'add', path: `${path}/${escapeToken(key)}`, value: after[key] });
  }
}

/** Processes a list from left to right, so that an index is that of the element in `after`. */
function diffLists(
  before: readonly unknown[],
  after: readonly unknown[],
  path: string,
  operations: PatchOperation[],
): void {
  let [from, to] = [0, 0];
  const ends: Pair = [before.length, after.length];
  for (const [nextFrom, nextTo] of [...commonElements(before, after), ends]) {
    for (; from < nextFrom && to < nextTo; from++, to++) {
      diff(before[from], after[to], `${path}/${to}`, operations);
    }
    for (; from < nextFrom; from++) operations.push({ op: 'remove', path: `${path}/${to}` });
    for (; to < nextTo; to++) {
      operations.push({ op: 'add', path: `${path}/${to}`, value: after[to] });
    }
    from++;
    to++;
  }
}

/** Returns the indexes of a longest common subsequence; of common ends only if the lists are too long. */
function commonElements(before: readonly unknown[], after: readonly unknown[]): Pair[] {
  const [a, b] = [before.map(textOf), after.map(textOf)];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  const shorter = Math.min(a.length, b.length) - start;
  while (end < shorter && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const rows = a.slice(start, a.length - end);
  const columns = b.slice(start, b.length - end);
  return [
    ...Array.from({ length: start }, (_, at): Pair => [at, at]),
    ...longestCommon(rows, columns).map(([x, y]): Pair => [x + start, y + start]),
    ...Array.from({ length: end }, (_, at): Pair => [a.length - end + at, b.length - end + at]),
  ];
}

function longestCommon(a: readonly string[], b: readonly string[]): Pair[] {
  if (a.length * b.length > MAX_PAIRS) return [];
  const width = b.length + 1;
  /** Length of the longest common subsequence of the rest of both lists. */
  const lengths = new Uint32Array((a.length + 1) * width);
  const at = (x: number, y: number) => lengths[x * width + y] ?? 0;
  for (let x = a.length - 1; x >= 0; x--) {
    for (let y = b.length - 1; y >= 0; y--) {
      lengths[x * width + y] =
        a[x] === b[y] ? at(x + 1, y + 1) + 1 : Math.max(at(x + 1, y), at(x, y + 1));
    }
  }
  const pairs: Pair[] = [];
  for (let [x, y] = [0, 0]; x < a.length && y < b.length;) {
    if (a[x] === b[y]) pairs.push([x++, y++]);
    else if (at(x + 1, y) >= at(x, y + 1)) x++;
    else y++;
  }
  return pairs;
}

function textOf(value: unknown): string {
  return JSON.stringify(value);
}

function escapeToken(token: string): string {
  return token.replaceAll('~', '~0').replaceAll('/', '~1');
}
