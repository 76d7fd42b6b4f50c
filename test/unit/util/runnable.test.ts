import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { runAll } from '../../../src/util/runnable.ts';

const untilAborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));

describe('running tasks under one signal', () => {
  it('resolves when all have ended after an abort', async () => {
    const stop = new AbortController();
    const all = runAll([untilAborted, untilAborted], stop.signal);
    stop.abort();
    await all;
  });

  it('stops the siblings of a task that fails, waits for them, and rejects with the first reason', async () => {
    let ended = false;
    const slow = async (signal: AbortSignal) => {
      await untilAborted(signal);
      ended = true;
      throw new Error('a consequence');
    };
    const tasks = [slow, () => Promise.reject(new Error('the cause'))];
    await assert.rejects(runAll(tasks, new AbortController().signal), /the cause/);
    assert.equal(ended, true);
  });

  it('leaves the others alone when a task just ends', async () => {
    const stop = new AbortController();
    let others = true;
    const all = runAll(
      [
        () => Promise.resolve(),
        async (signal) => (await untilAborted(signal), void (others = false)),
      ],
      stop.signal,
    );
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(others, true);
    stop.abort();
    await all;
  });

  it('turns a task that throws before its first await into a rejection', async () => {
    const broken = () => {
      throw new Error('sync');
    };
    await assert.rejects(runAll([broken], new AbortController().signal), /sync/);
  });
});
