import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { jsonPatch } from '../../../src/apiserver/patch/json-patch.ts';
import { jsonPatchOf } from '../../../src/webhook/json-patch.ts';

const json = fc.letrec((self) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom(null, true, 0, 1, 'a', 'b'),
    fc.array(self('value'), { maxLength: 6 }),
    fc.dictionary(
      fc.constantFrom('a', 'b', 'a/b', 'm~n', '~1', '', '__proto__', '0'),
      self('value'),
    ),
  ),
})).value;

/** As a request has it: own members of ordinary objects, also one named `__proto__`. */
const parsed = json.map((value): unknown => JSON.parse(JSON.stringify(value)));

/** A patch replaces the whole value by an object or a list only. */
const containers = parsed.filter((value) => typeof value === 'object' && value !== null);

test('applying the patch gives the changed object', () => {
  fc.assert(
    fc.property(containers, containers, (a, b) => {
      assert.deepEqual(jsonPatch(a, jsonPatchOf(a, b)), b);
    }),
    { numRuns: 100 },
  );
});

test('equal values have an empty patch', () => {
  fc.assert(
    fc.property(parsed, (a) => {
      assert.deepEqual(jsonPatchOf(a, JSON.parse(JSON.stringify(a))), []);
    }),
    { numRuns: 50 },
  );
});

test('the patch has only what changed', () => {
  const patch = (a: unknown, b: unknown) =>
    jsonPatchOf(a, b).map((each) =>
      'value' in each ? [each.op, each.path, each.value] : [each.op, each.path],
    );
  assert.deepEqual(patch({ a: { b: 1, c: 2 }, 'd/e~f': 1 }, { a: { b: 1, c: 3 }, g: null }), [
    ['replace', '/a/c', 3],
    ['remove', '/d~1e~0f'],
    ['add', '/g', null],
  ]);
  assert.deepEqual(patch([1, 2, 3, 4, 5], [1, 3, 5, 6]), [
    ['remove', '/1'],
    ['remove', '/2'],
    ['add', '/3', 6],
  ]);
  assert.deepEqual(patch([3], [1, 2, 3, 4]), [
    ['add', '/0', 1],
    ['add', '/1', 2],
    ['add', '/3', 4],
  ]);
  assert.deepEqual(patch([1, 2, 1, 2, 1, 3], [2, 1, 1, 3, 2]), [
    ['remove', '/0'],
    ['remove', '/2'],
    ['add', '/4', 2],
  ]);
  assert.deepEqual(patch([{ a: 1 }, { b: 1 }], [{ n: 0 }, { a: 1 }, { b: 2 }]), [
    ['add', '/0', { n: 0 }],
    ['replace', '/2/b', 2],
  ]);
});

test('long lists are compared in bounded time', () => {
  const before = Array.from({ length: 5000 }, (_, at) => at);
  const after = before.map((at) => at + 1);
  const operations = jsonPatchOf(before, after);
  assert.deepEqual(jsonPatch(before, operations), after);
  // One more pair of elements, and they are compared by their places.
  const shifted = (length: number) => {
    const list = Array.from({ length }, (_, at) => at);
    return jsonPatchOf(list, [-1, ...list.slice(0, -1).toSpliced(1, 0, -2), -3]).length;
  };
  assert.ok(shifted(480) < 5 && shifted(520) > 500);
});

test('a patch with too many operations replaces the changed members of the object', () => {
  const before = { kind: 'Box', spec: Array.from({ length: 10_001 }, () => ({})), status: {} };
  const after = { kind: 'Box', spec: before.spec.map(() => ({ a: 1 })) };
  assert.deepEqual(jsonPatchOf(before, after), [
    { op: 'replace', path: '/spec', value: after.spec },
    { op: 'remove', path: '/status' },
  ]);
  const most = { ...after, spec: [{}, ...after.spec.slice(1)], status: {} };
  assert.equal(jsonPatchOf(before, most).length, 10_000);
});
