import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import type {
  FieldSetPath,
  PathElement,
} from '../../../../src/apiserver/managedfields/field-set.ts';
import { FieldSet, displayPath } from '../../../../src/apiserver/managedfields/field-set.ts';
import { NestingError } from '../../../../src/util/json-value.ts';
import { nested } from '../schema/arbitraries.ts';

const element: fc.Arbitrary<PathElement> = fc.constantFrom<PathElement>(
  'f:a',
  'f:b',
  'f:__proto__',
  'k:{"name":"x"}',
  'k:{"port":80,"protocol":"TCP"}',
  'v:"one"',
  'v:2',
  'i:0',
);
const path: fc.Arbitrary<FieldSetPath> = fc.array(element, { minLength: 1, maxLength: 4 });
const paths: fc.Arbitrary<readonly FieldSetPath[]> = fc.array(path, { maxLength: 12 });

function textsOf(set: FieldSet): Set<string> {
  return new Set([...set.paths()].map((each) => JSON.stringify(each)));
}

test('reads and writes fieldsV1', () => {
  const fields = {
    'f:metadata': { 'f:labels': { '.': {}, 'f:app': {} } },
    'f:spec': {
      'f:finalizers': { 'v:"kubernetes"': {} },
      'f:ports': { 'k:{"port":80,"protocol":"TCP"}': { '.': {}, 'f:port': {} } },
      'f:replicas': {},
    },
  };
  const set = FieldSet.fromJson(fields);
  assert.deepEqual(set.toJson(), fields);
  assert.deepEqual([...set.paths()].map(displayPath), [
    '.metadata.labels',
    '.metadata.labels.app',
    '.spec.finalizers[="kubernetes"]',
    '.spec.ports[port=80,protocol="TCP"]',
    '.spec.ports[port=80,protocol="TCP"].port',
    '.spec.replicas',
  ]);
});

test('keys are independent of their order and sorted by value', () => {
  const set = FieldSet.fromJson({
    'k:{"protocol":"TCP","port":443}': {},
    'k:{"port": 80,"protocol":"TCP"}': {},
    'x:future': {},
  });
  assert.deepEqual(Object.keys(set.toJson()), [
    'k:{"port":80,"protocol":"TCP"}',
    'k:{"port":443,"protocol":"TCP"}',
  ]);
});

test('rejects malformed fieldsV1', () => {
  for (const fields of [
    5,
    null,
    [],
    { 'f:a': 5 },
    { spec: {} },
    { 'k:[1]': {} },
    { 'k:{': {} },
    { 'i:x': {} },
  ]) {
    assert.throws(() => FieldSet.fromJson(fields), SyntaxError, JSON.stringify(fields));
  }
  const deep = JSON.parse(
    JSON.stringify(nested(399)).replaceAll('"a"', '"f:a"').replace('1', '{}'),
  );
  assert.ok(!FieldSet.fromJson(deep).isEmpty);
  assert.throws(() => FieldSet.fromJson({ 'f:x': { 'f:y': deep } }), NestingError);
});

test('computes union, intersection and difference', () => {
  fc.assert(
    fc.property(paths, paths, (left, right) => {
      const [a, b] = [FieldSet.ofPaths(left), FieldSet.ofPaths(right)];
      const [inA, inB] = [textsOf(a), textsOf(b)];
      assert.deepEqual(textsOf(a.union(b)), inA.union(inB));
      assert.deepEqual(textsOf(a.intersection(b)), inA.intersection(inB));
      assert.deepEqual(textsOf(a.difference(b)), inA.difference(inB));
      assert.equal(a.difference(b).union(a.intersection(b)).equals(a), true);
      assert.equal(a.union(b).equals(b.union(a)), true);
      assert.equal(a.equals(b), inA.symmetricDifference(inB).size === 0);
      for (const each of left) assert.ok(a.has(each));
      for (const each of right) assert.equal(a.has(each), inA.has(JSON.stringify(each)));
    }),
  );
});

test('a recursive difference also removes the fields below', () => {
  fc.assert(
    fc.property(paths, paths, (left, right) => {
      const [a, b] = [FieldSet.ofPaths(left), FieldSet.ofPaths(right)];
      const expected = [...a.paths()].filter(
        (each) => !each.some((_, length) => b.has(each.slice(0, length + 1))),
      );
      assert.ok(a.recursiveDifference(b).equals(FieldSet.ofPaths(expected)));
    }),
  );
});

test('reading a written set returns an equal set', () => {
  fc.assert(
    fc.property(paths, (each) => {
      const set = FieldSet.ofPaths(each);
      assert.ok(FieldSet.fromJson(JSON.parse(JSON.stringify(set.toJson()))).equals(set));
    }),
  );
});

test('removing no field returns the set itself', () => {
  const set = FieldSet.ofPaths([['f:a', 'f:b'], ['f:c']]);
  assert.equal(set.difference(FieldSet.ofPaths([['f:a'], ['f:b', 'f:c']])), set);
  assert.equal(set.union(FieldSet.EMPTY), set);
});
