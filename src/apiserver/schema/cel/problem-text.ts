import type { TypeProblem } from './literal-problems.ts';

/** Longer lines are not repeated in messages. */
const MAX_SNIPPET = 16_384;

/** Problems with their places in the source, one below the other. */
export function problemText(source: string, problems: readonly TypeProblem[]): string {
  return problems.map((problem) => withPlace(source, problem)).join('\n');
}

function withPlace(source: string, { at, message }: TypeProblem): string {
  const before = source.slice(0, Math.max(0, at)).split('\n');
  const line = source.split('\n')[before.length - 1] ?? '';
  const column = Array.from(before.at(-1) ?? '').length;
  const place = `ERROR: <input>:${before.length}:${column + 1}: ${message}`;
  if (line.length > MAX_SNIPPET) return place;
  return `${place}\n | ${line.replaceAll('\t', ' ')}\n | ${'.'.repeat(column)}^`;
}
