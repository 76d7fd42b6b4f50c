import assert from 'node:assert/strict';
import { test } from 'node:test';
import { selectControllers } from '../../../../src/cli/program/run-config.ts';

const known = ['count', 'webapp', 'foo'];

test('selects names in the order of the registry', () => {
  assert.deepEqual(selectControllers(['*'], known), known);
  assert.deepEqual(selectControllers([], known), known);
  assert.deepEqual(selectControllers(['foo', 'count'], known), ['count', 'foo']);
  assert.deepEqual(selectControllers(['*', '-foo'], known), ['count', 'webapp']);
  assert.deepEqual(selectControllers(['-foo'], known), ['count', 'webapp']);
  assert.deepEqual(selectControllers(['-foo', '*', 'foo'], known), ['count', 'webapp']);
});

test('selects a controller that is off by default only by its name', () => {
  const onByDefault = ['count', 'webapp'];
  assert.deepEqual(selectControllers(['*'], known, onByDefault), onByDefault);
  assert.deepEqual(selectControllers(['-count'], known, onByDefault), ['webapp']);
  assert.deepEqual(selectControllers(['*', 'foo'], known, onByDefault), known);
  assert.deepEqual(selectControllers(['foo'], known, onByDefault), ['foo']);
});

test('rejects an unknown name, with the known ones', () => {
  assert.throws(() => selectControllers(['*', '-counts'], known), {
    name: 'UsageError',
    message:
      'unknown controller "counts" in --controllers: must be *, or one of count, webapp, foo, with or without a leading "-"',
  });
});

test('rejects an empty selection', () => {
  assert.throws(() => selectControllers(['count', '-count'], known), /selects no controller/);
});
