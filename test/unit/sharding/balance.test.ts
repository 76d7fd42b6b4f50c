import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { mayPart, shardToAskFor } from '../../../src/sharding/balance.ts';

describe('who asks for a shard', () => {
  it('has two fewer than somebody else', () => {
    assert.equal(shardToAskFor(['a', 'a', 'a'], 'b', 0), 0);
    assert.equal(shardToAskFor(['b', 'a', 'a', 'a'], 'b', 0.99), 3);
    assert.equal(shardToAskFor(['b', 'a', 'a'], 'b', 0), undefined);
    assert.equal(shardToAskFor(['a'], 'b', 0), undefined);
  });

  it('asks who has the most', () => {
    assert.equal(shardToAskFor(['a', 'a', 'b', 'b', 'b', 'a', 'b'], 'c', 0), 2);
  });

  it('does not take those that nobody holds for somebody’s', () => {
    assert.equal(shardToAskFor(['', '', ''], 'a', 0), undefined);
  });
});

describe('who is asked for a shard', () => {
  it('keeps it if it would want it back', () => {
    assert.equal(mayPart(['a', 'a', 'b'], 'a', 'b'), false);
    assert.equal(mayPart(['a', 'a'], 'a', 'b'), true);
    assert.equal(mayPart(['b', 'b', 'a'], 'a', 'b'), false);
  });
});

it('whoever holds what, asking ends, and then no two differ by more than one', () => {
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
          const asking = all.find((who) => shardToAskFor(holders, who, 0) !== undefined);
          if (asking === undefined) break;
          const shard = shardToAskFor(holders, asking, pick(rounds) / 1000);
          assert.ok(shard !== undefined && mayPart(holders, holders[shard]!, asking));
          holders[shard] = asking;
        }
        const counts = all.map((who) => holders.filter((one) => one === who).length);
        assert.ok(Math.max(...counts) - Math.min(...counts) <= 1);
      },
    ),
  );
});
