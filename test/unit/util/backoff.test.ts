import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Backoff, backoffMs } from '../../../src/util/backoff.ts';

describe('an exponential backoff', () => {
  it('grows to its maximum and restarts after a reset', () => {
    const backoff = new Backoff({ initialMs: 10, maxMs: 100 });
    const climb = () => [1, 2, 3, 4, 5, 6].map(() => backoff.next());
    assert.deepEqual(climb(), [10, 20, 40, 80, 100, 100]);
    assert.equal(backoff.attempts, 6);
    backoff.reset();
    assert.deepEqual(climb().slice(0, 2), [10, 20]);
  });

  it('adds jitter in [d, d + jitter * d) without changing the next delay', () => {
    const policy = { initialMs: 800, maxMs: 30_000, jitter: 1 };
    let random = 0;
    const backoff = new Backoff(policy, () => random);
    assert.equal(backoff.next(), 800);
    random = 0.5;
    assert.equal(backoff.next(), 2400);
    random = 0.999;
    assert.ok(backoff.next() < 6400);
  });

  it('never overflows', () => {
    assert.equal(backoffMs({ initialMs: 5, maxMs: 300_000 }, 100_000), 300_000);
  });
});
