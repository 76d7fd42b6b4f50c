import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LruMap } from '../../../src/util/lru-map.ts';

test('the entry unused for longest makes room for a new one', () => {
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

test('setting an entry anew replaces its value and makes it the latest', () => {
  const map = new LruMap<string, number>(2);
  map.set('a', 1);
  map.set('b', 2);
  map.set('a', 10);
  map.set('c', 3);
  assert.equal(map.get('a'), 10);
  assert.equal(map.get('b'), undefined);
});

test('asking for what is not there changes nothing', () => {
  const map = new LruMap<string, number>(1);
  map.set('a', 1);
  assert.equal(map.get('b'), undefined);
  assert.equal(map.get('a'), 1);
});

test('a capacity below one is refused', () => {
  assert.throws(() => new LruMap(0), /capacity.*got 0/);
});
