import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import type { ObjectMeta } from '../../../src/api/object.ts';
import { formatShardRange, isInShard, requireShardRange } from '../../../src/api/shard-range.ts';
import { anyText } from '../../support/any-text.ts';

function metadata(uid: string, namespace = 'default'): ObjectMeta {
  return {
    name: 'x',
    namespace,
    uid,
    resourceVersion: '1',
    creationTimestamp: '2026-01-01T00:00:00Z',
  };
}

describe('a shard of objects', () => {
  it('is requested as a half-open range of 64-bit hashes', () => {
    const ranges = [0, 1, 2].map((index) => formatShardRange({ index, count: 3 }));
    assert.deepEqual(ranges, [
      "shardRange(object.metadata.uid, '0x0000000000000000', '0x5555555600000000')",
      "shardRange(object.metadata.uid, '0x5555555600000000', '0xaaaaaaab00000000')",
      "shardRange(object.metadata.uid, '0xaaaaaaab00000000', '0x10000000000000000')",
    ]);
    assert.equal(
      formatShardRange({ by: 'namespace', index: 0, count: 1 }),
      "shardRange(object.metadata.namespace, '0x0000000000000000', '0x10000000000000000')",
    );
  });

  it('uses FNV-1a with its published test values', () => {
    // Hashes: '' is cbf29ce484222325, 'a' is af63dc4c8601ec8c, 'foobar' is 85944171f73967e8.
    const shardOf = (uid: string) =>
      Array.from({ length: 256 }, (_, index) => index).filter((index) =>
        isInShard({ index, count: 256 }, metadata(uid)),
      );
    assert.deepEqual(['', 'a', 'foobar'].map(shardOf), [[0xcb], [0xaf], [0x85]]);
  });

  it('has the same hash as a calculation with 64-bit integers, for any text', () => {
    const expectedShard = (text: string) => {
      let hash = 0xcbf29ce484222325n;
      for (const byte of new TextEncoder().encode(text)) {
        hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
      }
      return Number(hash >> 48n);
    };
    fc.assert(
      fc.property(anyText(), (uid) =>
        isInShard({ index: expectedShard(uid), count: 65_536 }, metadata(uid)),
      ),
    );
  });

  it('contains each object exactly once', () => {
    fc.assert(
      fc.property(
        fc.uuid(),
        fc.integer({ min: 1, max: 40 }),
        fc.constantFrom('uid' as const, 'namespace' as const),
        (text, count, by) => {
          const shards = Array.from({ length: count }, (_, index) => ({ by, index, count }));
          const found = shards.filter((range) => isInShard(range, metadata(text, text)));
          assert.equal(found.length, 1);
        },
      ),
    );
  });

  it('is rejected if its index or count is out of range', () => {
    for (const [index, count, message] of [
      [0, 0, 'shard.count must be an integer from 1 to 65536: got 0'],
      [0, 65_537, 'shard.count must be an integer from 1 to 65536: got 65537'],
      [3, 3, 'shard.index must be an integer from 0 to 2: got 3'],
      [0.5, 3, 'shard.index must be an integer from 0 to 2: got 0.5'],
    ] as const) {
      assert.throws(() => requireShardRange({ index, count }), { name: 'RangeError', message });
    }
  });
});
