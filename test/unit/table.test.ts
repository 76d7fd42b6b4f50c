import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
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

/** Pairs of a row's identifier and a test file. */
const inTable = rows.flatMap(([id = '', , here = '']) =>
  Array.from(here.matchAll(/`([\w./-]+\.test\.ts)`/g), ([, file]) => `${id} ${file}`),
);

/** Pairs of identifier and test file, from the comments in the test files. */
const inTests = globSync('**/*.test.ts', { cwd: import.meta.dirname }).flatMap((file) =>
  Array.from(
    readFileSync(join(import.meta.dirname, file), 'utf8').matchAll(/^ *\/\/ upstream: (.+)$/gm),
    ([, ids = '']) => ids.split(', ').map((id) => `${id} ${file}`),
  ).flat(),
);

test('the table has a row for each number, and no identifier twice', () => {
  const ids = rows.map(([id = '']) => id);
  assert.deepEqual(
    ids.filter((id) => /^\d+$/.test(id)).map(Number),
    Array.from({ length: LAST }, (_, at) => at + 1),
  );
  assert.equal(new Set(ids).size, ids.length);
  for (const row of rows) {
    assert.equal(row.length, 3, row.join(' | '));
    assert.match(row[0] ?? '', /^\d+[a-z]?$/);
  }
});

test('every row names a test file, or is marked as left out', () => {
  const withoutTest = rows.filter(
    ([, , here = '']) => !here.includes('.test.ts`') && !here.startsWith('Left out: '),
  );
  assert.deepEqual(withoutTest, []);
});

test('each file that a row names has a test with the identifier of that row, and no other file has', () => {
  assert.deepEqual(new Set(inTests), new Set(inTable));
});
