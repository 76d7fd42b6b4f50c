import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { syncSignal } from '../../../src/workqueue/worker-pool.ts';

function setUp(timeoutMs?: number) {
  const clock = new FakeClock();
  const cutOff = new AbortController();
  let timeouts = 0;
  const start = () => syncSignal(clock, cutOff.signal, timeoutMs, () => void timeouts++);
  return { clock, cutOff, start, timeouts: () => timeouts };
}

test('aborts only with the pool if there is no timeout', () => {
  const { clock, cutOff, start } = setUp();
  const limit = start();
  assert.equal(clock.pending, 0);
  cutOff.abort(new Error('the grace is over'));
  assert.equal(limit.signal.reason, cutOff.signal.reason);
  limit.dispose();
});

test('aborts and counts a sync that exceeds the timeout', async () => {
  const { clock, cutOff, start, timeouts } = setUp(2000);
  const limit = start();
  await clock.advance(1999);
  assert.equal(limit.signal.aborted, false);
  await clock.advance(1);
  assert.match(String(limit.signal.reason), /longer than 2s/);
  assert.equal(timeouts(), 1);
  assert.equal(cutOff.signal.aborted, false, 'other syncs continue');
  limit.dispose();
});

test('aborts with the drain timeout, also if that is already over', () => {
  const { cutOff, start, timeouts } = setUp(2000);
  const limit = start();
  cutOff.abort(new Error('the grace is over'));
  assert.equal(limit.signal.reason, cutOff.signal.reason);
  limit.dispose();
  const late = start();
  assert.equal(late.signal.reason, cutOff.signal.reason);
  late.dispose();
  assert.equal(timeouts(), 0);
});

test('leaves no timer or listener after dispose', () => {
  const { clock, cutOff, start } = setUp(2000);
  for (let i = 0; i < 3; i++) start().dispose();
  assert.equal(clock.pending, 0);
  assert.equal(getEventListeners(cutOff.signal, 'abort').length, 0);
});
