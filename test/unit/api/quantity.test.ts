import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  addQuantities,
  canonicalQuantity,
  compareQuantities,
  subtractQuantities,
} from '../../../src/api/quantity.ts';

const canonical: readonly [given: string, form: string | undefined][] = [
  ['0', '0'],
  ['0Gi', '0'],
  ['1', '1'],
  ['0.5', '500m'],
  ['.5', '500m'],
  ['1.', '1'],
  ['100m', '100m'],
  ['1000m', '1'],
  ['1500m', '1500m'],
  ['1000', '1k'],
  ['1024', '1024'],
  ['1024Mi', '1Gi'],
  ['1500Mi', '1500Mi'],
  ['1.5Gi', '1536Mi'],
  ['0.5Mi', '512Ki'],
  ['0.5Ki', '512'],
  ['0.9765625Ki', '1k'],
  ['1G', '1G'],
  ['2000M', '2G'],
  ['1e3', '1e3'],
  ['1E3', '1e3'],
  ['12e-1', '1200e-3'],
  ['1E', '1E'],
  ['-1500m', '-1500m'],
  ['+5', '5'],
  ['0.0000000001', '1n'],
  ['', undefined],
  ['.', undefined],
  ['1Gb', undefined],
  ['1 Gi', undefined],
  ['lots', undefined],
  ['1e1000000000', undefined],
  ['9'.repeat(1000), undefined],
];

for (const [given, form] of canonical) {
  test(`${given.slice(0, 20) || 'nothing'} is ${form ? `written ${form}` : 'no quantity'}`, () => {
    assert.equal(canonicalQuantity(given), form);
  });
}

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
