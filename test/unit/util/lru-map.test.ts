import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LruMap } from '../../../src/util/lru-map.ts';

test('replaces the least recently used entry', () => {
  const map = new LruMap<string, number>(2);
  map.set('a', 1);
  map.set('b', 2);
  map.get('a');
  map.set('c', 3);
  assert.equal(map.size, 2);
  assert.equal(map.get('b'), undefined);
  assert.equal(map.get('a'), 1);
  assert.equal(map.get('c'), 3);
});

test('updates an existing entry and marks it as most recently used', () => {
  const map = new LruMap<string, number>(2);
  map.set('a', 1);
  map.set('b', 2);
  map.set('a', 10);
  map.set('c', 3);
  assert.equal(map.get('a'), 10);
  assert.equal(map.get('b'), undefined);
});

test('does not change on a read of a missing key', () => {
  const map = new LruMap<string, number>(1);
  map.set('a', 1);
  assert.equal(map.get('b'), undefined);
  assert.equal(map.get('a'), 1);
});

test('rejects a capacity below one', () => {
  assert.throws(() => new LruMap(0), /capacity.*got 0/);
});
