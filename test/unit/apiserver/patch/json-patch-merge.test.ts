import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { mergePatch } from '../../../../src/apiserver/patch/json-patch.ts';
import { NestingError } from '../../../../src/util/json-value.ts';
import { deepFreeze, json, nested, object } from '../schema/arbitraries.ts';

test('applies the examples of RFC 7386', () => {
  const cases: readonly (readonly [unknown, unknown, unknown])[] = [
    [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
    [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
    [{ a: 'b' }, { a: null }, {}],
    [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
    [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
    [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
    [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
    [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
    [
      ['a', 'b'],
      ['c', 'd'],
      ['c', 'd'],
    ],
    [{ a: 'b' }, ['c'], ['c']],
    [{ a: 'foo' }, null, null],
    [{ a: 'foo' }, 'bar', 'bar'],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [[1, 2], { a: 'b', c: null }, { a: 'b' }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ];
  for (const [target, patch, expected] of cases) {
    assert.deepEqual(mergePatch(deepFreeze(target), deepFreeze(patch)), expected);
  }
});

test('shares unchanged parts and returns the target if nothing changes', () => {
  const target = deepFreeze({ a: { x: 1 }, b: { y: [1] } });
  const patched = mergePatch(target, { a: { x: 2 } }) as typeof target;
  assert.equal(patched.b, target.b);
  assert.equal(mergePatch(target, { a: { x: 1, z: null } }), target);
});

test('a member named __proto__ is data', () => {
  const patched = mergePatch({}, JSON.parse('{"__proto__": {"polluted": 1}}'));
  assert.deepEqual(Object.keys(patched as object), ['__proto__']);
  assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
});

test('throws a NestingError for deep nesting', () => {
  assert.throws(() => mergePatch({}, nested(100_000)), NestingError);
});

test('patching is idempotent, and an empty patch changes nothing', () => {
  fc.assert(
    fc.property(object, json, (target, patch) => {
      deepFreeze(target);
      // As upstream, null in a list that replaces an object is removed only when it replaces a list.
      const twice = mergePatch(mergePatch(target, deepFreeze(patch)), patch);
      assert.deepEqual(mergePatch(twice, patch), twice);
      assert.equal(mergePatch(target, {}), target);
    }),
  );
});
