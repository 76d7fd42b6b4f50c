import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { answerWithin } from '../../../src/cache/reflector-list.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';

/** A call that ends only with its signal, as one to a peer that has vanished. */
function unanswered(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason as Error);
    signal.addEventListener('abort', () => reject(signal.reason as Error));
  });
}

test('an answer in time is the answer, and leaves nothing behind', async () => {
  const clock = new FakeClock();
  const { signal } = new AbortController();
  assert.equal(await answerWithin(clock, 1000, signal, async () => 7), 7);
  assert.equal(clock.pending, 0);
  assert.equal(getEventListeners(signal, 'abort').length, 0);
});

test('no answer in time is an unreachable server', async () => {
  const clock = new FakeClock();
  const answer = answerWithin(clock, 1000, undefined, unanswered);
  const rejected = assert.rejects(answer, { kind: 'unreachable' });
  await clock.advance(1000);
  await rejected;
});

test('an abort, before or during the call, ends it with the signal’s reason', async () => {
  const clock = new FakeClock();
  const reason = new Error('stopped');
  await assert.rejects(answerWithin(clock, 1000, AbortSignal.abort(reason), unanswered), reason);
  const controller = new AbortController();
  const answer = answerWithin(clock, 1000, controller.signal, unanswered);
  controller.abort(reason);
  await assert.rejects(answer, reason);
  assert.equal(clock.pending, 0);
});
