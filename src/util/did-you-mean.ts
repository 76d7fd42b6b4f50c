import { editDistance } from './edit-distance.ts';

/** Words that are further away than this are other words. */
const MOST_TYPOS = 2;

/**
 * The end of a complaint about `word`: `; did you mean --kubeconfig?`, or nothing if none of `words`
 * is close to it.
 *
 * @param show how the word is written
 */
export function didYouMean(
  word: string,
  words: readonly string[],
  show: (word: string) => string = (same) => same,
): string {
  const most = Math.min(MOST_TYPOS, Math.floor(word.length / 3));
  const candidates = words
    .map((each) => ({ each, typos: editDistance(word.toLowerCase(), each.toLowerCase(), most) }))
    .filter(({ typos }) => typos <= most)
    .sort((a, b) => a.typos - b.typos);
  const [best] = candidates;
  return best ? `; did you mean ${show(best.each)}?` : '';
}
