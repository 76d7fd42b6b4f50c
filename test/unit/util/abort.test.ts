import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { rejectOnAbort, settledBeforeAbort, untilAborted } from '../../../src/util/abort.ts';
import { Deferred } from '../../../src/util/deferred.ts';
import { settle } from '../../../src/util/fake-clock.ts';

test('untilAborted resolves when the signal aborts, or at once if it has', async () => {
  const controller = new AbortController();
  const aborted = untilAborted(controller.signal);
  controller.abort();
  await aborted;
  await untilAborted(controller.signal);
});

test('settledBeforeAbort reports whether the promise resolved first', async () => {
  const controller = new AbortController();
  assert.equal(await settledBeforeAbort(Promise.resolve(), controller.signal), true);
  const pending = settledBeforeAbort(new Deferred().promise, controller.signal);
  controller.abort();
  assert.equal(await pending, false);
  assert.equal(await settledBeforeAbort(new Deferred().promise, controller.signal), false);
});

test('settledBeforeAbort rejects as the promise does', async () => {
  const { signal } = new AbortController();
  await assert.rejects(settledBeforeAbort(Promise.reject(new Error('broken')), signal), /broken/);
});

test('rejectOnAbort settles as the promise does, or rejects with the reason of the signal', async () => {
  const controller = new AbortController();
  assert.equal(await rejectOnAbort(Promise.resolve(1), controller.signal), 1);
  assert.equal(await rejectOnAbort(Promise.resolve(2), undefined), 2);
  const pending = rejectOnAbort(new Deferred().promise, controller.signal);
  controller.abort(new Error('stopped'));
  await assert.rejects(pending, /stopped/);
});

test('leaves no listener on the signal after the promise has settled', async () => {
  const { signal } = new AbortController();
  await settledBeforeAbort(Promise.resolve(), signal);
  await rejectOnAbort(Promise.resolve(), signal);
  await settle();
  assert.equal(getEventListeners(signal, 'abort').length, 0);
});
