import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'yaml';
import { yaml } from '../../../../../src/serving/page/browser/yaml.ts';

const TEXTS = [
  '',
  'web',
  'true',
  'No',
  '1e3',
  '0x1',
  '2026-01-01',
  '~',
  'null',
  '=',
  '<<',
  'a.b/c-d e',

  '- a',
  'a: b',
  'a:',
  '# c',
  'a #b',
  ' x',
  'x ',
  '{',
  '[',
  "'",
  '"',
  '@a',
  '%a',
  '&a',
  '*a',
  '!a',
  '|',

  'a\nb\n',
  'a\n b',
  '\na',
  'a\n\n',
  'a\n\nb',
  'a\r\nb',
  'a\tb',
  '\u202Ea',
  '\u0000',
  '\u0085',
  '<script>',
];

test('YAML of the page has the same value as the JSON of the server', () => {
  const value = {
    list: TEXTS,
    map: Object.fromEntries(TEXTS.map((text) => [text, { [text]: text }])),
    nested: [[1, [], [['a', 'b\nc']]], { a: {}, b: [{ c: 'd\ne', f: [-1.5, true, null] }] }],
  };
  assert.deepEqual(parse(yaml(value)), value);
  assert.match(yaml({ spec: { names: ['a', 'b'] } }), /^spec:\n  names:\n  - a\n  - b$/);
});
