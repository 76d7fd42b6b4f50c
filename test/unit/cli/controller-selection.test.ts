import assert from 'node:assert/strict';
import { test } from 'node:test';
import { selectControllers } from '../../../src/cli/run-config.ts';

const known = ['count', 'webapp', 'foo'];

test('names are selected in the order of the registry', () => {
  assert.deepEqual(selectControllers(['*'], known), known);
  assert.deepEqual(selectControllers([], known), known);
  assert.deepEqual(selectControllers(['foo', 'count'], known), ['count', 'foo']);
  assert.deepEqual(selectControllers(['*', '-foo'], known), ['count', 'webapp']);
  assert.deepEqual(selectControllers(['-foo'], known), ['count', 'webapp']);
  assert.deepEqual(selectControllers(['-foo', '*', 'foo'], known), ['count', 'webapp']);
});

test('what is not on by default runs when it is named, and only then', () => {
  const onByDefault = ['count', 'webapp'];
  assert.deepEqual(selectControllers(['*'], known, onByDefault), onByDefault);
  assert.deepEqual(selectControllers(['-count'], known, onByDefault), ['webapp']);
  assert.deepEqual(selectControllers(['*', 'foo'], known, onByDefault), known);
  assert.deepEqual(selectControllers(['foo'], known, onByDefault), ['foo']);
});

test('a name that does not exist is refused, with the ones that do', () => {
  assert.throws(() => selectControllers(['*', '-counts'], known), {
    name: 'UsageError',
    message:
      'unknown controller "counts" in --controllers: must be *, or one of count, webapp, foo, with or without a leading "-"',
  });
});

test('a selection of nothing is refused', () => {
  assert.throws(() => selectControllers(['count', '-count'], known), /selects no controller/);
});
