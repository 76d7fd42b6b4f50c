import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unifiedDiff } from '../../../src/util/unified-diff.ts';

const lines = (...numbers: readonly (number | string)[]) => numbers.join('\n');

test('shows changed lines with three lines around them', () => {
  assert.equal(
    unifiedDiff(lines(1, 2, 3, 4, 5, 6, 7, 8, 9), lines(1, 2, 3, 4, 'x', 6, 7, 8, 9)),
    '@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n',
  );
});

test('separates changes that are far from each other', () => {
  const before = lines('a', 1, 2, 3, 4, 5, 6, 7, 'b');
  const after = lines(1, 2, 3, 4, 5, 6, 7, 'b', 'c');
  assert.equal(
    unifiedDiff(before, after),
    '@@ -1,4 +1,3 @@\n-a\n 1\n 2\n 3\n@@ -7,3 +6,4 @@\n 6\n 7\n b\n+c\n',
  );
});

test('shows changes that are near to each other together', () => {
  assert.equal(
    unifiedDiff(lines('a', 1, 2, 'b'), lines('c', 1, 2, 'd')),
    '@@ -1,4 +1,4 @@\n-a\n+c\n 1\n 2\n-b\n+d\n',
  );
});

test('counts a single line without a length, and none from the line before', () => {
  assert.equal(unifiedDiff('a', lines('a', 'b')), '@@ -1 +1,2 @@\n a\n+b\n');
  assert.equal(unifiedDiff('a', 'b'), '@@ -1 +1 @@\n-a\n+b\n');
});

test('equal texts have no difference', () => {
  assert.equal(unifiedDiff('a\nb', 'a\nb'), '');
});

test('replaces all lines of texts that need too many comparisons', () => {
  const same = Array.from({ length: 3000 }, () => 'a');
  const changed = unifiedDiff(lines('b', ...same), lines(...same, 'c')).split('\n');
  assert.deepEqual(changed.slice(0, 2), ['@@ -1,3001 +1,3001 @@', '-b']);
  assert.equal(changed.filter((line) => line === '-a').length, 3000);
});
