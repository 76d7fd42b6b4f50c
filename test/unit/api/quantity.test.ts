import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  addQuantities,
  NOT_A_QUANTITY,
  canonicalQuantity,
  compareQuantities,
  quantityProblem,
  resourceQuantity,
  subtractQuantities,
} from '../../../src/api/quantity.ts';

/** A quantity with the text that Go's package resource writes, and that of a resource list, or with its error. */
const QUANTITIES: readonly (readonly [given: string, stored: string, inList?: string])[] = [
  ['0', '0'],
  ['0Gi', '0'],
  ['-0', '0'],
  ['+', '0'],
  ['.', '0'],
  ['Mi', '0'],
  ['Ti', '0'],
  ['0Pi', '0'],
  ['e-9', '0'],
  ['1E4294967297', '10'],
  ['1', '1'],
  ['+1', '+1'],
  ['5.', '5.'],
  ['5.m', '5.m'],
  ['00012', '00012'],
  ['1.0', '1'],
  ['1.100', '1.100'],
  ['1.10', '1100m'],
  ['.5', '500m'],
  ['1000m', '1'],
  ['1500m', '1500m'],
  ['1000', '1k'],
  ['1024', '1024'],
  ['999999999999999999', '999999999999999999'],
  ['1000000000000000000', '1E'],
  ['12345678901234567890m', '12345678901234567890m'],
  ['1000E', '1'],
  ['1024Mi', '1Gi'],
  ['1000Ki', '1000Ki'],
  ['1.5Gi', '1536Mi'],
  ['0.5Ki', '512'],
  ['0.1Ki', '102400m'],
  ['0.000001Ki', '1024u', '2m'],
  ['1.000000000001Ki', '1024000000002n', '1024001m'],
  ['1024Pi', '1Ei'],
  ['9Ei', '9223372036854775807'],
  ['1e3', '1e3'],
  ['1E3', '1E3'],
  ['1e03', '1e03'],
  ['12e-1', '1200e-3'],
  ['1000e0', '1e3'],
  ['1e19', '10e18'],
  ['1e399', '1e399'],
  ['1e400', '10e399'],
  ['1e2147483647', '10e2147483646'],
  ['1e-400', '1e-9', '1e-3'],
  ['1E', '1E'],
  ['-1500m', '-1500m'],
  ['-1.5Gi', '-1536Mi'],
  ['0.0000000001', '1n', '1m'],
  ['1.0005', '1000500u', '1001m'],
  [' 1 ', '1'],
];

test('quantities are written as Go writes them', () => {
  for (const [given, stored, inList = stored] of QUANTITIES) {
    assert.deepEqual([canonicalQuantity(given), resourceQuantity(given)], [stored, inList], given);
    assert.equal(quantityProblem(given), undefined);
    assert.equal(canonicalQuantity(stored), stored);
  }
});

test('a text that is no quantity has the error of Go', () => {
  for (const text of ['', 'x', '1.2.3', '1 Gi', '1e5k', '0x1', '1_0', '9'.repeat(1000)]) {
    assert.deepEqual([canonicalQuantity(text), quantityProblem(text)], [undefined, NOT_A_QUANTITY]);
  }
  for (const text of ['1K', '1e', '1e+', '1kk', '1m5', '1mi', '1e99999999999999999999']) {
    const problem = "unable to parse quantity's suffix";
    assert.deepEqual([canonicalQuantity(text), quantityProblem(text)], [undefined, problem]);
  }
});

test('a missing number is 0 only for the suffixes for which it is in Go', () => {
  for (const text of ['Pi', '.Ei', '+Pi', 'e-10']) {
    const problem = 'unable to parse numeric part of quantity';
    assert.deepEqual([canonicalQuantity(text), quantityProblem(text)], [undefined, problem]);
  }
});

test('quantities compare by amount, whatever their form', () => {
  assert.equal(compareQuantities('1', '1000m'), 0);
  assert.equal(compareQuantities('1Gi', '1G'), 1);
  assert.equal(compareQuantities('-1', '0'), -1);
});

test('sums have the format of the first quantity that is not 0', () => {
  assert.equal(addQuantities('1Gi', '512Mi'), '1536Mi');
  assert.equal(addQuantities('0', '512Mi'), '512Mi');
  assert.equal(addQuantities('600m', '0.4'), '1');
  assert.equal(subtractQuantities('1', '1500m'), '-500m');
  assert.equal(subtractQuantities('1Gi', '1Gi'), '0');
});
