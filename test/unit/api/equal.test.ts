import assert from 'node:assert/strict';
import { test } from 'node:test';
import { covers } from '../../../src/api/equal.ts';

test('accepts additional members', () => {
  assert.ok(covers({ a: 1, b: { c: 'x', d: true } }, { b: { c: 'x' } }));
  assert.ok(covers({ a: 1 }, { a: 1, b: undefined }));
  assert.ok(covers(undefined, undefined));
});

test('detects missing and different members', () => {
  assert.ok(!covers({ a: 1 }, { a: 2 }));
  assert.ok(!covers({ a: 1 }, { a: { b: 1 } }));
  assert.ok(!covers({}, { a: null }));
  assert.ok(!covers([], {}));
  assert.ok(!covers({ toString: 1 }, { valueOf: 1 }), 'what every object inherits is not there');
});

test('accepts additional objects of a list, and another order', () => {
  const actual = [{ name: 'sidecar' }, { name: 'app', image: 'nginx', pullPolicy: 'Always' }];
  assert.ok(covers(actual, [{ name: 'app', image: 'nginx' }]));
  assert.ok(!covers(actual, [{ name: 'app', image: 'redis' }]));
  assert.ok(!covers(undefined, [{ name: 'app' }]));
});

test('compares a list of plain values as a whole', () => {
  assert.ok(covers(['a', 'b'], ['a', 'b']));
  assert.ok(!covers(['a', 'b'], ['a']));
  assert.ok(!covers(['b', 'a'], ['a', 'b']));
  assert.ok(!covers(['a'], []));
});
