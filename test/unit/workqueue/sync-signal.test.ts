import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { syncSignal } from '../../../src/workqueue/worker-pool.ts';

function setUp(timeoutMs?: number) {
  const clock = new FakeClock();
  const cutOff = new AbortController();
  let timeouts = 0;
  const begin = () => syncSignal(clock, cutOff.signal, timeoutMs, () => void timeouts++);
  return { clock, cutOff, begin, timeouts: () => timeouts };
}

test('without a time limit a run lives for as long as the pool lets it', () => {
  const { clock, cutOff, begin } = setUp();
  const limit = begin();
  assert.equal(clock.pending, 0);
  cutOff.abort(new Error('the grace is over'));
  assert.equal(limit.signal.reason, cutOff.signal.reason);
  limit.dispose();
});

test('a run that takes too long is told so, and counted', async () => {
  const { clock, cutOff, begin, timeouts } = setUp(2000);
  const limit = begin();
  await clock.advance(1999);
  assert.equal(limit.signal.aborted, false);
  await clock.advance(1);
  assert.match(String(limit.signal.reason), /longer than 2s/);
  assert.equal(timeouts(), 1);
  assert.equal(cutOff.signal.aborted, false, 'the others go on');
  limit.dispose();
});

test('a run with a time limit hears of the end of the grace, also if that was before its beginning', () => {
  const { cutOff, begin, timeouts } = setUp(2000);
  const limit = begin();
  cutOff.abort(new Error('the grace is over'));
  assert.equal(limit.signal.reason, cutOff.signal.reason);
  limit.dispose();
  const late = begin();
  assert.equal(late.signal.reason, cutOff.signal.reason);
  late.dispose();
  assert.equal(timeouts(), 0);
});

test('a run that has ended leaves neither timer nor listener', () => {
  const { clock, cutOff, begin } = setUp(2000);
  for (let i = 0; i < 3; i++) begin().dispose();
  assert.equal(clock.pending, 0);
  assert.equal(getEventListeners(cutOff.signal, 'abort').length, 0);
});
