import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { dump } from 'js-yaml';
import { yamlPieces } from '../../../../src/apiserver/http/yaml-pieces.ts';

const TEXTS = [
  '',
  ' ',
  'a',
  'a\nb',
  'a\n\n\n',
  '\n',
  '  a\nb',
  'a\n \nb\n',
  'null',
  '- a',
  'x'.repeat(50),
];

/** Lists and objects in each other, with all texts as values and keys. */
function nested(depth: number): unknown {
  if (depth === 0) return TEXTS;
  const inner = nested(depth - 1);
  const keys = [...TEXTS, 'k'.repeat(1100)];
  const members = keys.map((key, at) => [
    key,
    at % 4 === 0 ? inner : at % 2 ? key : [inner, {}, []],
  ]);
  return { list: [1, null, inner, [inner]], ...Object.fromEntries(members) };
}

describe('YAML in pieces', () => {
  it('is the YAML of the whole value', () => {
    const value = nested(1);
    const options = { noRefs: true, sortKeys: true, lineWidth: -1, seqNoIndent: true };
    const whole = dump(value, options);
    for (const weight of [1, 100, Infinity]) {
      const pieces = [...yamlPieces(value, weight)];
      assert.equal(pieces.join(''), whole);
      assert.equal(pieces.length > 10, weight < Infinity);
    }
    for (const text of TEXTS)
      assert.equal([...yamlPieces([text], 1)].join(''), dump([text], options));
  });
});
