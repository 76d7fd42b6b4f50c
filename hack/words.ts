/**
 * Reports words that have a standard replacement (docs/glossary.md) in everything that people read:
 * guides, comments, names, messages and test titles. An identifier is split into its words: `heldBack` is "held back".
 * `npm run check` runs it.
 *
 *   node hack/words.ts [PATH…]     the given files and folders, or all that are checked
 *
 * A line that needs such a word on purpose has `words-ok` in it.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');

/** Files and folders that are checked. */
const CHECKED = ['README.md', '.github', 'crds', 'docs', 'examples', 'hack', 'src', 'test'];

/** Regular expressions without case, and what to write instead. */
const WORDS: readonly (readonly [pattern: string, instead: string])[] = [
  ['nobody|somebody|whoever|whomever', 'name the actor: the user, the server, another controller'],
  ['anew', 'again'],
  ['for ever', 'indefinitely, without limit'],
  ['in peace', 'leave it out'],
  ['forerunner', 'previous object, predecessor'],
  ['of old', 'legacy, previous'],
  ['tells? of|told of|tells? whether|is told|are told|tells? about', 'reports, logs, says'],
  ['looks? after|looked after', 'reconcile, watch'],
  ['what becomes of|what became of', 'result, outcome'],
  ['is to be had|can be had|cannot be had', 'is available, is not available'],
  ['gives? back|given back|gave back', 'return, release'],
  ['begins?|began|begun', 'start'],
  ['ceases?|ceased', 'stop'],
  ['deaf', 'stalled'],
  ['ladders?|rungs?', 'backoff, step'],
  ['sign of life|signs of life', 'activity'],
  ['vouch(?:es)? for', 'trust, sign'],
  ['meddlers?', 'another client'],
  ['strangers?', 'another party, an untrusted source'],
  ['wherefore|be it|as it were', 'leave it out'],
  ['mirrors?', 'cache (of objects); corresponds to'],
  ['goes on|go on|went on', 'continue, resume'],
  ['held back', 'suppressed, delayed'],
  ['oddit(?:y|ies)', 'strict decoding errors'],
  ['legible', 'pretty print'],
  ['uninterpretable', 'cannot be parsed'],
  ['by chance', 'randomly, jitter'],
  ['their say|has a say', 'is asked'],
];

/** Technical uses of these words. */
const ALLOWED =
  /Object\.is|-----BEGIN|unit\/ mirror|config\.mirror|[Mm]irror ?[Pp]od|isMirror|SKIP_MIRROR|mirrors `src\/`|mirror `src\/`|words-ok/;

const pattern = new RegExp(`\\b(?:${WORDS.map(([words]) => words).join('|')})\\b`, 'gi');

function filesBelow(paths: readonly string[]): string[] {
  return execFileSync('git', ['ls-files', '--', ...paths], { cwd: ROOT, encoding: 'utf8' })
    .split('\n')
    .filter(
      (path) =>
        /\.(?:md|ts|ya?ml|sh|json)$/.test(path) &&
        !path.includes('generated') &&
        !path.includes('static-site'),
    )
    .filter((path) => path !== 'hack/words.ts');
}

function insteadOf(word: string): string {
  const found = WORDS.find(([words]) => new RegExp(`^(?:${words})$`, 'i').test(word));
  return found?.[1] ?? '';
}

/** Returns the words of a line, and those of its identifiers, that have a replacement. */
function wordsIn(line: string): string[] {
  const inText = [...line.matchAll(pattern)].map(([word]) => word);
  const inIdentifiers = [...line.matchAll(COMPOUND)].flatMap(([identifier]) => {
    const split = identifier.replaceAll(/([a-z\d])([A-Z])/g, '$1 $2').replaceAll('_', ' ');
    return [...split.matchAll(pattern)].map(([word]) => word.toLowerCase());
  });
  return [...inText, ...inIdentifiers];
}

/** Identifiers of several words: `heldBack`, `HELD_BACK`. */
const COMPOUND = /\b(?:[A-Za-z\d]*[a-z\d][A-Z]\w*|[A-Za-z\d]+_\w+)\b/g;

let count = 0;
for (const path of filesBelow(process.argv.length > 2 ? process.argv.slice(2) : CHECKED)) {
  const lines = readFileSync(join(ROOT, path), 'utf8').split('\n');
  for (const [index, line] of lines.entries()) {
    if (ALLOWED.test(line)) continue;
    for (const word of wordsIn(line)) {
      count += 1;
      console.error(`${path}:${index + 1}: "${word}": ${insteadOf(word)}`);
    }
  }
}
if (count > 0) {
  console.error(`words: ${count} found`);
  process.exitCode = 1;
}
