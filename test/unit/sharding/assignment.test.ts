import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { mayHandOver, shardToRequest } from '../../../src/sharding/assignment.ts';

describe('shardToRequest', () => {
  it('requests a shard from a replica with two more', () => {
    assert.equal(shardToRequest(['a', 'a', 'a'], 'b', 0), 0);
    assert.equal(shardToRequest(['b', 'a', 'a', 'a'], 'b', 0.99), 3);
    assert.equal(shardToRequest(['b', 'a', 'a'], 'b', 0), undefined);
    assert.equal(shardToRequest(['a'], 'b', 0), undefined);
  });

  it('requests from a replica with the most shards', () => {
    assert.equal(shardToRequest(['a', 'a', 'b', 'b', 'b', 'a', 'b'], 'c', 0), 2);
  });

  it('ignores shards without a holder', () => {
    assert.equal(shardToRequest(['', '', ''], 'a', 0), undefined);
  });
});

describe('mayHandOver', () => {
  it('rejects a request that would be reversed', () => {
    assert.equal(mayHandOver(['a', 'a', 'b'], 'a', 'b'), false);
    assert.equal(mayHandOver(['a', 'a'], 'a', 'b'), true);
    assert.equal(mayHandOver(['b', 'b', 'a'], 'a', 'b'), false);
  });
});

it('requests end for every distribution, with numbers that differ by at most one', () => {
  const holder = fc.constantFrom('', 'a', 'b', 'c', 'd');
  fc.assert(
    fc.property(
      fc.array<string>(holder, { maxLength: 24 }),
      fc.func(fc.nat(999)),
      (start, pick) => {
        const holders = [...start];
        const all = ['a', 'b', 'c', 'd'];
        for (let free = holders.indexOf(''); free >= 0; free = holders.indexOf(''))
          holders[free] = 'a';
        for (let rounds = 0; ; rounds++) {
          assert.ok(rounds <= holders.length, 'it ends');
          const withRequest = all.find((who) => shardToRequest(holders, who, 0) !== undefined);
          if (withRequest === undefined) break;
          const shard = shardToRequest(holders, withRequest, pick(rounds) / 1000);
          assert.ok(shard !== undefined && mayHandOver(holders, holders[shard]!, withRequest));
          holders[shard] = withRequest;
        }
        const counts = all.map((who) => holders.filter((one) => one === who).length);
        assert.ok(Math.max(...counts) - Math.min(...counts) <= 1);
      },
    ),
  );
});
