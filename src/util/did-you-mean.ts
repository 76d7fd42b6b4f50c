/** Maximum edit distance of a suggestion. */
const MAX_TYPOS = 2;

/**
 * Returns a suggestion for the end of an error message about `word`: `; did you mean --kubeconfig?`. Returns an
 * empty string if none of `words` is similar.
 *
 * @param show formats the suggested word
 */
export function didYouMean(
  word: string,
  words: readonly string[],
  show: (word: string) => string = (same) => same,
): string {
  const most = Math.min(MAX_TYPOS, Math.floor(word.length / 3));
  const candidates = words
    .map((each) => ({ each, typos: editDistance(word.toLowerCase(), each.toLowerCase(), most) }))
    .filter(({ typos }) => typos <= most)
    .sort((a, b) => a.typos - b.typos);
  const [best] = candidates;
  return best ? `; did you mean ${show(best.each)}?` : '';
}

/**
 * Returns the number of insertions, deletions, substitutions and swaps of adjacent letters between `a` and
 * `b` (optimal string alignment distance). Stops early and returns `most + 1` if it exceeds `most`.
 */
export function editDistance(a: string, b: string, most: number): number {
  if (Math.abs(a.length - b.length) > most) return most + 1;
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const isSame = a[row - 1] === b[column - 1];
      const isSwapped =
        row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      current[column] = Math.min(
        at(last, column) + 1,
        at(current, column - 1) + 1,
        at(last, column - 1) + (isSame ? 0 : 1),
        isSwapped ? at(beforeLast, column - 2) + 1 : Infinity,
      );
    }
    if (Math.min(...current) > most) return most + 1;
    beforeLast = last;
    last = current;
  }
  return Math.min(at(last, b.length), most + 1);
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Infinity;
}
