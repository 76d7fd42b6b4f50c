import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { StoredObject } from '../../../../src/apiserver/objects/resource-definition.ts';
import { formatFieldError } from '../../../../src/api/field-error.ts';
import { validateScaleValues } from '../../../../src/apiserver/objects/scale-values.ts';

const PATHS = {
  specReplicasPath: '.spec.count',
  statusReplicasPath: '.status.replicas',
  labelSelectorPath: '.status.selector',
};

function problemsOf(fields: Record<string, unknown>): string[] {
  const object: StoredObject = {
    apiVersion: 'demo.mark8s.io/v1',
    kind: 'Count',
    metadata: { name: 'a' },
    ...fields,
  } as StoredObject;
  return validateScaleValues(object, PATHS).map(formatFieldError);
}

test('accepts absent values and values in range', () => {
  assert.deepEqual(problemsOf({}), []);
  assert.deepEqual(problemsOf({ spec: null, status: null }), []);
  const status = { replicas: 0, selector: 'a=b' };
  assert.deepEqual(problemsOf({ spec: { count: 2 ** 31 - 1 }, status }), []);
});

test('reports the limit of a number out of range', () => {
  assert.deepEqual(problemsOf({ spec: { count: -1 }, status: { replicas: 2 ** 31 } }), [
    '.spec.count: Invalid value: -1: should be a non-negative integer',
    '.status.replicas: Invalid value: 2147483648: should be less than or equal to 2147483647',
  ]);
});

test('reports a value of another type with the text of the accessor', () => {
  const wrong = (count: unknown) => problemsOf({ spec: { count } })[0];
  const problem = '.spec.count: Invalid value: 0: .spec.count accessor error:';
  assert.equal(wrong('three'), `${problem} three is of the type string, expected int64`);
  assert.equal(wrong(1.5), `${problem} 1.5 is of the type float64, expected int64`);
  assert.equal(wrong(true), `${problem} true is of the type bool, expected int64`);
  assert.equal(wrong(null), `${problem} <nil> is of the type <nil>, expected int64`);
  assert.match(wrong([1]) ?? '', /is of the type \[\]interface \{\}, expected int64$/);
  assert.deepEqual(problemsOf({ status: { selector: 7 } }), [
    '.status.selector: Invalid value: "": .status.selector accessor error: 7 is of the type int64, expected string',
  ]);
  assert.match(problemsOf({ spec: 'x' })[0] ?? '', /x is of the type string, expected map\[/);
});
