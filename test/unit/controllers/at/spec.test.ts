import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { parseCommand, parseSchedule } from '../../../../src/controllers/at/spec.ts';
import { anyText } from '../../../support/any-text.ts';

function words(text: string): readonly string[] {
  const parsed = parseCommand(text);
  assert.equal(parsed.kind, 'words', JSON.stringify(parsed));
  return parsed.kind === 'words' ? parsed.words : [];
}

test('any number of blanks separates words', () => {
  assert.deepEqual(words('  echo \t YAY\n now '), ['echo', 'YAY', 'now']);
});

test('keeps the text within quotes, and joins it with adjacent characters', () => {
  assert.deepEqual(words(`echo "a  b" 'c  d'`), ['echo', 'a  b', 'c  d']);
  assert.deepEqual(words(`echo a"b c"d''`), ['echo', 'ab cd']);
  assert.deepEqual(words(`echo "" ''`), ['echo', '', '']);
  assert.deepEqual(words(`echo "it's" '"x"'`), ['echo', "it's", '"x"']);
});

test('a backslash keeps the next character, in double quotes only some', () => {
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

test('unfinished quotes and escapes and empty commands are malformed', () => {
  const problem = (text: string) => {
    const parsed = parseCommand(text);
    return parsed.kind === 'malformed' ? parsed.problem : parsed.words.join('|');
  };
  assert.equal(problem('echo "x'), 'a quote " is opened and not closed');
  assert.equal(problem("echo 'x"), "a quote ' is opened and not closed");
  assert.equal(problem('echo x\\'), 'it ends in a backslash that escapes nothing');
  assert.equal(problem('   '), 'it has no words');
  assert.equal(problem('"" x'), 'it has no words');
});

test('quoted words are parsed to the same words', () => {
  fc.assert(
    fc.property(fc.array(anyText(), { minLength: 1 }), (list) => {
      const text = ['run', ...list].map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');
      assert.deepEqual(words(text), ['run', ...list]);
    }),
    { numRuns: 200 },
  );
});

test('a time is parsed in its zone, and its fraction is rounded up', () => {
  const noon = Date.UTC(2019, 3, 12, 12, 0, 0);
  assert.equal(parseSchedule('2019-04-12T12:00:00Z'), noon);
  assert.equal(parseSchedule('2019-04-12t12:00:00z'), noon);
  assert.equal(parseSchedule('2019-04-12T14:00:00+02:00'), noon);
  assert.equal(parseSchedule('2019-04-12T06:30:00-05:30'), noon);
  assert.equal(parseSchedule('2019-04-12T12:00:00.0001Z'), noon + 1);
  assert.equal(parseSchedule('2019-04-12T12:00:00.5Z'), noon + 500);
  assert.equal(parseSchedule('2019-04-12T12:00:00.1230Z'), noon + 123);
  assert.equal(parseSchedule('2019-04-12T11:59:60Z'), noon, 'a leap second');
  assert.equal(parseSchedule('0001-01-01T00:00:00Z'), Date.parse('0001-01-01T00:00:00Z'));
});

test('text that is not an RFC 3339 time is rejected', () => {
  for (const text of [
    '',
    'tomorrow',
    '2019-04-12',
    '2019-04-12T12:00:00',
    '2019-04-12 12:00:00Z',
    '2019-02-29T12:00:00Z',
    '2019-13-01T12:00:00Z',
    '2019-00-01T12:00:00Z',
    '2019-04-12T24:00:00Z',
    '2019-04-12T12:60:00Z',
    '2019-04-12T12:00:61Z',
    '2019-04-12T12:00:00+24:00',
    '2019-4-12T12:00:00Z',
    ' 2019-04-12T12:00:00Z',
  ]) {
    assert.equal(parseSchedule(text), undefined, text);
  }
});

test('dates of toISOString are parsed to the same time', () => {
  const date = fc.date({ min: new Date(0), max: new Date('9999-12-31'), noInvalidDate: true });
  fc.assert(
    fc.property(date, (instant) => {
      assert.equal(parseSchedule(instant.toISOString()), instant.getTime());
    }),
  );
});
