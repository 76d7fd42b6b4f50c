import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { DeltaQueue } from '../../../src/cache/delta-queue.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

test('releases a processed entry while other entries wait', async () => {
  const queue = new DeltaQueue<object>(new FakeClock());
  let first: WeakRef<object> | undefined;
  const fill = () => {
    const entry = { big: true };
    first = new WeakRef(entry);
    void queue.push(entry);
    void queue.push({});
    void queue.push({});
  };
  fill();
  const abort = new AbortController();
  let gate: () => void = () => undefined;
  let processed = 0;
  const consuming = queue.consume(
    () => (++processed === 2 ? new Promise<void>((resolve) => void (gate = resolve)) : undefined),
    abort.signal,
  );
  await settle();
  assert.equal(queue.length, 1, 'the second is being processed, the third waits');
  collectGarbage();
  assert.equal(first?.deref(), undefined);
  abort.abort();
  gate();
  await consuming;
});

test('does not grow if it is never empty', async () => {
  const queue = new DeltaQueue<{ readonly next: boolean }>(new FakeClock());
  const entry = { next: true };
  const passes = 300_000;
  let processed = 0;
  const abort = new AbortController();
  void queue.push(entry);
  void queue.push(entry);
  const heapBytes = () => {
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  const before = heapBytes();
  let after = 0;
  await queue.consume(() => {
    // One entry arrives for each processed one, so the queue is never empty.
    void queue.push(entry);
    if (++processed < passes) return undefined;
    after = heapBytes();
    abort.abort();
    return undefined;
  }, abort.signal);
  assert.ok(after - before < passes * 4, `${after - before} bytes more, ${passes} have passed`);
});
