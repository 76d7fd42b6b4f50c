import assert from 'node:assert/strict';
import { test } from 'node:test';
import { columnLines, tableLines } from '../../../../src/cli/common/table-printer.ts';

const TABLE = {
  columnDefinitions: [
    { name: 'Name', priority: 0 },
    { name: 'Ready' },
    { name: 'Node', priority: 1 },
    { name: 'Age', priority: 0 },
  ],
  rows: [
    { cells: ['test-count-0', '1/1', 'node-1', '5s'] },
    { cells: ['x', null, 'node-2', '12h'] },
  ],
};

test('pads columns as kubectl does, except the last one', () => {
  assert.deepEqual(tableLines(TABLE), [
    'NAME           READY   AGE',
    'test-count-0   1/1     5s',
    'x                      12h',
  ]);
});

test('prints all columns in wide output, and names with their kind', () => {
  assert.deepEqual(tableLines(TABLE, { wide: true, namePrefix: 'pod/' }), [
    'NAME               READY   NODE     AGE',
    'pod/test-count-0   1/1     node-1   5s',
    'pod/x                      node-2   12h',
  ]);
});

test('makes columns at least six characters wide', () => {
  assert.deepEqual(columnLines([['a', 'b', 'c']]), ['a     b     c']);
});

test('prints the first line of a cell, without control characters', () => {
  const rows = [{ cells: ['a\nb', '\u001b[31mred\u0007'] }, { cells: [3, true] }];
  const columnDefinitions = [{ name: 'A' }, { name: 'B' }];
  assert.deepEqual(tableLines({ columnDefinitions, rows }), [
    'A      B',
    'a...   ^[[31mred',
    '3      true',
  ]);
});
