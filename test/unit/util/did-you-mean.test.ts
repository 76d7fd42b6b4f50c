import assert from 'node:assert/strict';
import { test } from 'node:test';
import { editDistance } from '../../../src/util/did-you-mean.ts';

test('counts an insertion, deletion, substitution or swap of adjacent letters as one', () => {
  for (const [a, b, distance] of [
    ['pod', 'pod', 0],
    ['pod', 'pods', 1],
    ['pods', 'pod', 1],
    ['pod', 'pad', 1],
    ['deploymnet', 'deployment', 1],
    ['', 'ab', 2],
    ['kitten', 'sitting', 3],
  ] as const) {
    assert.equal(editDistance(a, b, 3), distance, `${a} ${b}`);
  }
});

test('returns one more than the maximum if the distance exceeds it', () => {
  assert.equal(editDistance('a', 'abcdef', 2), 3);
  assert.equal(editDistance('abcdef', 'uvwxyz', 2), 3);
  assert.equal(editDistance('kitten', 'sitting', 2), 3);
});
