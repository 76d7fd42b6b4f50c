import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { parseCommand } from '../../../../src/controllers/at/command.ts';
import { anyText } from '../../../support/any-text.ts';

function words(text: string): readonly string[] {
  const parsed = parseCommand(text);
  assert.equal(parsed.kind, 'words', JSON.stringify(parsed));
  return parsed.kind === 'words' ? parsed.words : [];
}

test('blanks separate words, however many there are', () => {
  assert.deepEqual(words('  echo \t YAY\n now '), ['echo', 'YAY', 'now']);
});

test('quotes keep what is between them, and join with what is around them', () => {
  assert.deepEqual(words(`echo "a  b" 'c  d'`), ['echo', 'a  b', 'c  d']);
  assert.deepEqual(words(`echo a"b c"d''`), ['echo', 'ab cd']);
  assert.deepEqual(words(`echo "" ''`), ['echo', '', '']);
  assert.deepEqual(words(`echo "it's" '"x"'`), ['echo', "it's", '"x"']);
});

test('a backslash keeps the next character, in double quotes only those that need it', () => {
  assert.deepEqual(words('echo a\\ b \\"'), ['echo', 'a b', '"']);
  assert.deepEqual(words('echo "a\\"b" "c\\d" "\\$x"'), ['echo', 'a"b', 'c\\d', '$x']);
  assert.deepEqual(words(`echo 'a\\b' '\\$x'`), ['echo', 'a\\b', '\\$x']);
});

test('nothing is expanded', () => {
  assert.deepEqual(words('echo $HOME *.txt `id` ; true'), [
    'echo',
    '$HOME',
    '*.txt',
    '`id`',
    ';',
    'true',
  ]);
});

test('what is not finished is told, and so is nothing', () => {
  const problem = (text: string) => {
    const parsed = parseCommand(text);
    return parsed.kind === 'malformed' ? parsed.problem : parsed.words.join('|');
  };
  assert.equal(problem('echo "x'), 'a quote " is opened and not closed');
  assert.equal(problem("echo 'x"), "a quote ' is opened and not closed");
  assert.equal(problem('echo x\\'), 'it ends in a backslash that escapes nothing');
  assert.equal(problem('   '), 'it has no word');
  assert.equal(problem('"" x'), 'it has no word');
});

test('whatever the words, quoted they come back', () => {
  fc.assert(
    fc.property(fc.array(anyText(), { minLength: 1 }), (list) => {
      const text = ['run', ...list].map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');
      assert.deepEqual(words(text), ['run', ...list]);
    }),
    { numRuns: 200 },
  );
});
