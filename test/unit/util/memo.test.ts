import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Memo, oncePerObject } from '../../../src/util/memo.ts';

describe('a memo', () => {
  const memoOf = (capacity: number) => {
    const made: string[] = [];
    const memo = new Memo(capacity, (text) => {
      made.push(text);
      return text === '' ? undefined : { text };
    });
    return { memo, made };
  };

  it('computes a result once, also if it is undefined', () => {
    const { memo, made } = memoOf(10);
    assert.equal(memo.has('a'), false);
    assert.equal(memo.get('a'), memo.get('a'));
    assert.equal(memo.has('a'), true);
    assert.equal(memo.get(''), undefined);
    assert.equal(memo.get(''), undefined);
    assert.deepEqual(made, ['a', '']);
  });

  it('is cleared when it is full and a new result is added', () => {
    const { memo, made } = memoOf(2);
    for (const text of ['a', 'b', 'a', 'b']) memo.get(text);
    assert.deepEqual(made, ['a', 'b']);
    memo.get('c');
    assert.deepEqual(
      ['a', 'b', 'c'].map((text) => memo.has(text)),
      [false, false, true],
    );
  });

  it('does not cache a failure', () => {
    const memo = new Memo(2, () => {
      throw new Error('no');
    });
    assert.throws(() => memo.get('a'), /no/);
    assert.equal(memo.has('a'), false);
  });
});

it('computes a result once for each object, also if it is undefined', () => {
  let computed = 0;
  const sizeOf = oncePerObject((list: readonly number[]) => {
    computed++;
    return list.length || undefined;
  });
  const [full, empty] = [[1, 2], []];
  assert.deepEqual([full, empty, full, empty].map(sizeOf), [2, undefined, 2, undefined]);
  assert.equal(computed, 2);
});
