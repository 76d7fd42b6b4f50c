import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { objectKey } from '../../../src/api/object-key.ts';
import { formatPostponement, Postponements } from '../../../src/manager/sync-log.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';

const KEY = objectKey('default', 'web');

describe('Postponements', () => {
  let clock: FakeClock;
  let postponements: Postponements;

  beforeEach(() => {
    clock = new FakeClock();
    postponements = new Postponements(clock);
  });

  it('are returned when the sync starts, with number and duration per reason', async () => {
    postponements.add(KEY, 'lag');
    await clock.advance(50);
    postponements.add(KEY, 'lag');
    await clock.advance(100);
    postponements.add(KEY, 'loop');
    await clock.advance(1000);
    postponements.add(KEY, 'lag');
    await clock.advance(7);
    assert.deepEqual(postponements.take(KEY), [
      { reason: 'lag', times: 3, ms: 157 },
      { reason: 'loop', times: 1, ms: 1000 },
    ]);
    assert.deepEqual(postponements.take(KEY), [], 'postponements are returned once');
  });

  it('are empty for a key that was not postponed, or after they were taken', () => {
    assert.deepEqual(postponements.take(KEY), []);
    postponements.add(KEY, 'lag');
    postponements.clear();
    assert.deepEqual(postponements.take(KEY), []);
  });

  it('are formatted for the log', () => {
    assert.equal(formatPostponement({ reason: 'lag', times: 1, ms: 50.2 }), 'lag: 50ms');
    assert.equal(formatPostponement({ reason: 'lag', times: 3, ms: 1500 }), 'lag: 1.5s (3 times)');
  });
});
