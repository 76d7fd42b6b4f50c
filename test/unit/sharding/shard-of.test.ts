import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { shardOf } from '../../../src/sharding/assignment.ts';
import { anyText } from '../../support/any-text.ts';

describe('shardOf', () => {
  it('returns a valid shard for every key', () => {
    fc.assert(
      fc.property(anyText(), fc.integer({ min: 1, max: 64 }), (key, count) => {
        const shard = shardOf(key, count);
        assert.ok(Number.isInteger(shard) && shard >= 0 && shard < count);
      }),
    );
  });

  it('never changes between versions, because replicas of two versions must agree', () => {
    const keys = ['default/a', 'default/b', 'kube-system/test-count-17', 'node-1', ''];
    assert.deepEqual(
      keys.map((key) => shardOf(key, 1000)),
      [516, 846, 878, 667, 668],
    );
  });

  for (const [what, keyOf] of Object.entries({
    'numbered names': (i: number) => `default/test-${i}`,
    'padded numbers': (i: number) => `default/test-${String(i).padStart(5, '0')}`,
    'namespaces with one object each': (i: number) => `team-${i}/main`,
  })) {
    for (const count of [2, 3, 7, 16]) {
      it(`spreads 3,000 ${what} over ${count} within 20 % of even`, () => {
        const loads = Array.from({ length: count }, () => 0);
        for (let i = 0; i < 3000; i++) loads[shardOf(keyOf(i), count)]! += 1;
        for (const load of loads) assert.ok(Math.abs(load - 3000 / count) < (0.2 * 3000) / count);
      });
    }
  }
});
