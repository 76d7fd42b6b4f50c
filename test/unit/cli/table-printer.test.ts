import assert from 'node:assert/strict';
import { test } from 'node:test';
import { columnLines, tableLines } from '../../../src/cli/table-printer.ts';

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

test('columns are padded as kubectl pads them, the last one not at all', () => {
  assert.deepEqual(tableLines(TABLE), [
    'NAME           READY   AGE',
    'test-count-0   1/1     5s',
    'x                      12h',
  ]);
});

test('wide output has every column, and names can carry their kind', () => {
  assert.deepEqual(tableLines(TABLE, { wide: true, namePrefix: 'pod/' }), [
    'NAME               READY   NODE     AGE',
    'pod/test-count-0   1/1     node-1   5s',
    'pod/x                      node-2   12h',
  ]);
});

test('no column is narrower than six characters', () => {
  assert.deepEqual(columnLines([['a', 'b', 'c']]), ['a     b     c']);
});

test('a cell ends with its first line and drives no terminal', () => {
  const rows = [{ cells: ['a\nb', '\u001b[31mred\u0007'] }, { cells: [3, true] }];
  const columnDefinitions = [{ name: 'A' }, { name: 'B' }];
  assert.deepEqual(tableLines({ columnDefinitions, rows }), [
    'A      B',
    'a...   ^[[31mred',
    '3      true',
  ]);
});
