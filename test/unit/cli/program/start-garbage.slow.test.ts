import assert from 'node:assert/strict';
import { test } from 'node:test';
import { getHeapStatistics } from 'node:v8';
import { collectStartGarbage } from '../../../../src/cli/program/start-garbage.ts';

/** Leaves about 32 MiB of garbage, and returns the size of the used heap. */
function litter(): number {
  Array.from({ length: 4096 }, () => Array.from({ length: 1024 }, () => 0));
  return getHeapStatistics().used_heap_size;
}

test('collects the garbage of the start', () => {
  const before = litter();
  assert.equal(collectStartGarbage(Number.POSITIVE_INFINITY), true);
  assert.ok(getHeapStatistics().used_heap_size < before - 16 * 2 ** 20);
  assert.equal(Reflect.get(globalThis, 'gc'), undefined);
});

test('does not stop a program that has a large heap', () => {
  assert.equal(collectStartGarbage(1), false);
});

test('does nothing in an engine without a collector', () => {
  assert.equal(
    collectStartGarbage(Number.POSITIVE_INFINITY, () => undefined),
    false,
  );
});
