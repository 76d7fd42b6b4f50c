type Tag = 'equal' | 'change';

/** Lines `[from, to)` of both texts that are equal, or that replace each other. */
interface Block {
  readonly tag: Tag;
  readonly from: readonly [before: number, after: number];
  readonly to: readonly [before: number, after: number];
}

const CONTEXT = 3;

/**
 * Comparisons of lines within a diff. Above it, the remaining lines are compared no more and replace each other: texts
 * come from requests, and must not block the process.
 */
const MAX_COMPARISONS = 1_000_000;

/** Returns the changed lines of a text with three lines around them, as Go's `difflib` writes them without a header. */
export function unifiedDiff(before: string, after: string): string {
  if (before === after) return '';
  const [left, right] = [before.split('\n'), after.split('\n')];
  const lines: string[] = [];
  for (const group of groupsOf(blocksOf(left, right))) {
    const [first, last] = [group[0], group.at(-1)];
    if (!first || !last) continue;
    const ranges = ([0, 1] as const).map((side) => rangeText(first.from[side], last.to[side]));
    lines.push(`@@ -${ranges[0]} +${ranges[1]} @@`);
    for (const { tag, from, to } of group) {
      const removed = left.slice(from[0], to[0]);
      if (tag === 'equal') {
        for (const line of removed) lines.push(` ${line}`);
        continue;
      }
      for (const line of removed) lines.push(`-${line}`);
      for (const line of right.slice(from[1], to[1])) lines.push(`+${line}`);
    }
  }
  return lines.map((line) => `${line}\n`).join('');
}

function rangeText(start: number, end: number): string {
  const length = end - start;
  if (length === 1) return String(start + 1);
  return `${length === 0 ? start : start + 1},${length}`;
}

/** Returns all lines as blocks that alternate between equal and changed lines. */
function blocksOf(left: readonly string[], right: readonly string[]): Block[] {
  const blocks: Block[] = [];
  let at: readonly [number, number] = [0, 0];
  const push = (tag: Tag, to: readonly [number, number]) => {
    if (to[0] === at[0] && to[1] === at[1]) return;
    const last = blocks.at(-1);
    if (tag === 'equal' && last?.tag === tag) blocks[blocks.length - 1] = { ...last, to };
    else blocks.push({ tag, from: at, to });
    at = to;
  };
  const places = Map.groupBy(right.keys(), (index) => right[index] ?? '');
  const search = { left, places, comparisons: 0 };
  for (const [before, after, size] of matchesOf(search, [0, 0], [left.length, right.length])) {
    push('change', [before, after]);
    push('equal', [before + size, after + size]);
  }
  push('change', [left.length, right.length]);
  return blocks;
}

interface Search {
  readonly left: readonly string[];
  /** Where the other text has each line. */
  readonly places: ReadonlyMap<string, readonly number[]>;
  comparisons: number;
}

/** Returns the longest run of equal lines, with those before and after it, by Ratcliff and Obershelp. */
function* matchesOf(
  search: Search,
  start: readonly [number, number],
  end: readonly [number, number],
): Generator<readonly [before: number, after: number, size: number]> {
  const { left, places } = search;
  let best: readonly [number, number, number] = [start[0], start[1], 0];
  let lengths = new Map<number, number>();
  for (let before = start[0]; before < end[0]; before++) {
    const next = new Map<number, number>();
    const found = places.get(left[before] ?? '') ?? [];
    search.comparisons += found.length + 1;
    if (search.comparisons > MAX_COMPARISONS) return;
    for (const after of found) {
      if (after < start[1] || after >= end[1]) continue;
      const size = (lengths.get(after - 1) ?? 0) + 1;
      next.set(after, size);
      if (size > best[2]) best = [before - size + 1, after - size + 1, size];
    }
    lengths = next;
  }
  const [before, after, size] = best;
  if (size === 0) return;
  yield* matchesOf(search, start, [before, after]);
  yield best;
  yield* matchesOf(search, [before + size, after + size], end);
}

/** Groups changed blocks that are near to each other, with the lines around them. */
function* groupsOf(blocks: readonly Block[]): Generator<readonly Block[]> {
  let group: Block[] = [];
  for (const [index, { tag, from, to }] of blocks.entries()) {
    if (tag === 'change') {
      group.push({ tag, from, to });
      continue;
    }
    const [isFirst, isLast] = [index === 0, index === blocks.length - 1];
    const head: readonly [number, number] = [to[0] - CONTEXT, to[1] - CONTEXT];
    const tail: readonly [number, number] = [from[0] + CONTEXT, from[1] + CONTEXT];
    const length = to[0] - from[0];
    if (isFirst) group.push({ tag, from: length > CONTEXT ? head : from, to });
    else if (isLast) group.push({ tag, from, to: length > CONTEXT ? tail : to });
    else if (length <= 2 * CONTEXT) group.push({ tag, from, to });
    else {
      yield [...group, { tag, from, to: tail }];
      group = [{ tag, from: head, to }];
    }
  }
  if (group.some(({ tag }) => tag === 'change')) yield group;
}
