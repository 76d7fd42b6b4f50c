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

/** Maximum number of operations, as kube-apiserver's for patches of clients. */
const MAX_OPERATIONS = 10_000;

/**
 * Returns the operations that change `before` into `after`, both parsed from JSON. Elements that move in a list are
 * removed and added. If there are too many operations, they replace the changed members of the outermost object.
 */
export function jsonPatchOf(before: unknown, after: unknown): PatchOperation[] {
  const operations: PatchOperation[] = [];
  diff(before, after, '', operations);
  const isShort = operations.length <= MAX_OPERATIONS;
  if (isShort || !isRecord(before) || !isRecord(after)) return operations;
  const replaced: PatchOperation[] = [];
  diffObjects(before, after, '', replaced, replace);
  return replaced;
}

function diff(before: unknown, after: unknown, path: string, operations: PatchOperation[]): void {
  if (isRecord(before) && isRecord(after)) diffObjects(before, after, path, operations);
  else if (Array.isArray(before) && Array.isArray(after)) {
    diffLists(before, after, path, operations);
  } else replace(before, after, path, operations);
}

function replace(
  before: unknown,
  after: unknown,
  path: string,
  operations: PatchOperation[],
): void {
  if (!equalJson(before, after)) operations.push({ op: 'replace', path, value: after });
}

type Members = Readonly<Record<string, unknown>>;

function diffObjects(
  before: Members,
  after: Members,
  path: string,
  operations: PatchOperation[],
  compare: typeof diff = diff,
): void {
  for (const key of Object.keys(before)) {
    const member = `${path}/${escapeToken(key)}`;
    if (Object.hasOwn(after, key)) compare(before[key], after[key], member, operations);
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
  let start = 0;
  let [end, newEnd] = [before.length, after.length];
  while (start < end && start < newEnd && equalJson(before[start], after[start])) start++;
  while (end > start && newEnd > start && equalJson(before[end - 1], after[newEnd - 1])) {
    end--;
    newEnd--;
  }
  const common = longestCommon(before.slice(start, end), after.slice(start, newEnd));
  let [from, to] = [start, start];
  for (const [x, y] of [...common, [end - start, newEnd - start] as const]) {
    const [nextFrom, nextTo] = [start + x, start + y];
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

/** Returns the indexes of a longest common subsequence; none if the lists are too long. */
function longestCommon(before: readonly unknown[], after: readonly unknown[]): Pair[] {
  if (before.length * after.length > MAX_PAIRS) return [];
  const [a, b] = [before.map(textOf), after.map(textOf)];
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
