import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const LAST = 92;

const readme = readFileSync(join(import.meta.dirname, 'README.md'), 'utf8');

/** Cells of every table, without heads and rules. */
const rows = readme
  .split('\n')
  .filter((line) => line.startsWith('|') && !/^\| (?:No\.|---) \|/.test(line))
  .map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );

/** Each file a cell names, with the sentences quoted behind it. */
function references(cell: string): { readonly file: string; readonly sentences: string[] }[] {
  return cell.split(/(?=`[\w./-]+\.test\.ts`:)/).flatMap((part) => {
    const file = /^`([\w./-]+\.test\.ts)`:/.exec(part)?.[1];
    const sentences = [...part.matchAll(/“([^”]+)”/g)].map(([, sentence = '']) => sentence);
    return file === undefined ? [] : [{ file, sentences }];
  });
}

test('the table has a row for each number, and no number twice', () => {
  const numbers = rows.flatMap(([number = '']) => (number === '' ? [] : [Number(number)]));
  assert.deepEqual(
    numbers,
    Array.from({ length: LAST }, (_, at) => at + 1),
  );
  for (const row of rows) assert.equal(row.length, 3, row.join(' | '));
});

test('every row quotes a sentence, or says that it is left out', () => {
  const mute = rows.filter(
    ([, , here = '']) => references(here).length === 0 && !here.startsWith('Left out: '),
  );
  assert.deepEqual(mute, []);
});

test('every sentence quoted is a title in the file it is quoted from', () => {
  const texts = new Map<string, string>();
  const textOf = (file: string): string => {
    const path = join(import.meta.dirname, file);
    if (!existsSync(path)) return '';
    const text = texts.get(file) ?? readFileSync(path, 'utf8');
    texts.set(file, text);
    return text;
  };
  const rotten = rows.flatMap(([number, , here = '']) =>
    references(here).flatMap(({ file, sentences }) => {
      const text = textOf(file);
      const missing = sentences.filter(
        (sentence) => !["'", '"', '`'].some((quote) => text.includes(quote + sentence + quote)),
      );
      if (sentences.length === 0) missing.push('(no sentence)');
      return missing.map((sentence) => `${number}: ${file}: ${sentence}`);
    }),
  );
  assert.deepEqual(rotten, []);
});
