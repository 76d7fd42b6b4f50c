import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { runAll } from '../../../src/util/runnable.ts';

const untilAborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));

describe('runAll', () => {
  it('resolves after an abort when all tasks have ended', async () => {
    const stop = new AbortController();
    const all = runAll([untilAborted, untilAborted], stop.signal);
    stop.abort();
    await all;
  });

  it('aborts the other tasks when one fails, waits for them, and rejects with the first error', async () => {
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

  it('does not abort the other tasks when one resolves', async () => {
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

  it('rejects if a task throws synchronously', async () => {
    const broken = () => {
      throw new Error('sync');
    };
    await assert.rejects(runAll([broken], new AbortController().signal), /sync/);
  });
});
