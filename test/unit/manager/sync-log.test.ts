import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { objectKey } from '../../../src/api/object-key.ts';
import { formatPostponement, Postponements } from '../../../src/manager/sync-log.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';

const KEY = objectKey('default', 'web');

describe('what holds keys back', () => {
  let clock: FakeClock;
  let holds: Postponements;

  beforeEach(() => {
    clock = new FakeClock();
    holds = new Postponements(clock);
  });

  it('is told once the key runs: how often for each reason, and for how long', async () => {
    holds.add(KEY, 'lag');
    await clock.advance(50);
    holds.add(KEY, 'lag');
    await clock.advance(100);
    holds.add(KEY, 'loop');
    await clock.advance(1000);
    holds.add(KEY, 'lag');
    await clock.advance(7);
    assert.deepEqual(holds.take(KEY), [
      { reason: 'lag', times: 3, ms: 157 },
      { reason: 'loop', times: 1, ms: 1000 },
    ]);
    assert.deepEqual(holds.take(KEY), [], 'it is told once');
  });

  it('is nothing for a key that was never held, or is no longer asked for', () => {
    assert.deepEqual(holds.take(KEY), []);
    holds.add(KEY, 'lag');
    holds.clear();
    assert.deepEqual(holds.take(KEY), []);
  });

  it('has a form for a log line', () => {
    assert.equal(formatPostponement({ reason: 'lag', times: 1, ms: 50.2 }), 'lag: 50ms');
    assert.equal(formatPostponement({ reason: 'lag', times: 3, ms: 1500 }), 'lag: 1.5s (3 times)');
  });
});
