import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KubernetesObject } from '../../../src/api/object.ts';
import { objectCondition } from '../../../src/serving/object-condition.ts';
import { StatusHistory } from '../../../src/serving/status-history.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';

const read = (status: unknown, metadata: object = {}) => {
  const { state, message, since } = objectCondition({
    metadata: { generation: 2, ...metadata },
    status,
  } as unknown as KubernetesObject);
  return [state, message, since];
};

const at = { lastTransitionTime: '2026-01-01T00:00:00Z' };

test('the condition of an object is that of kstatus', () => {
  const of = (...conditions: unknown[]) => read({ conditions });
  const ready = { type: 'Ready', status: 'True', reason: 'Done', message: '', ...at };
  const waiting = { ...ready, status: 'False', message: '0 of 3 Pods are ready' };
  const stalled = { type: 'Stalled', status: 'True', message: 'no', ...at };
  for (const [actual, expected] of [
    [of(ready), ['ready', 'Done', at.lastTransitionTime]],
    [of(waiting), ['notReady', '0 of 3 Pods are ready', at.lastTransitionTime]],
    [of({ ...ready, status: 'Unknown' }), ['notReady', 'Done', at.lastTransitionTime]],
    [of(waiting, stalled), ['stalled', 'no', at.lastTransitionTime]],
    [of(ready, { ...stalled, status: 'False' }), ['ready', 'Done', at.lastTransitionTime]],
    [
      of({ ...waiting, type: 'Available', message: 1 }),
      ['notReady', 'Done', at.lastTransitionTime],
    ],
    [
      of({ ...waiting, reason: 'PodCompleted', message: '' }),
      ['ready', 'PodCompleted', at.lastTransitionTime],
    ],
    [
      of({ ...ready, observedGeneration: 1 }),
      ['notReady', 'Its status describes generation 1 of 2', undefined],
    ],
    [of({ ...ready, observedGeneration: 2 }), ['ready', 'Done', at.lastTransitionTime]],
    [read({ conditions: [ready], observedGeneration: 1 })[0], 'notReady'],
    [of({ ...waiting, message: 'password=hunter2 x' })[1], 'password=[redacted] x'],
    [of(), ['unknown', '', undefined]],
    [of(null, 1, { type: 'Other', status: 'False' }), ['unknown', '', undefined]],
    [read('text'), ['unknown', '', undefined]],
    [read({ conditions: {} }), ['unknown', '', undefined]],
    [
      read({ conditions: [ready] }, { deletionTimestamp: 'T', finalizers: ['a/b', 'c'] }),
      ['notReady', 'Is being deleted; waits for a/b, c', 'T'],
    ],
  ] as const) {
    assert.deepEqual(actual, expected);
  }
});

test('the history has a sample each 10 s, of the last 15 minutes', async () => {
  const clock = new FakeClock();
  let syncs = 0;
  const history = new StatusHistory(clock, () => {
    syncs++;
    return { isReady: true, syncs, failures: 0, notReady: 0, waiting: 0 };
  });
  const stop = new AbortController();
  const running = history.run(stop.signal);
  await clock.advance(95_000);
  assert.equal(history.samples.length, 10);
  await clock.advance(3_600_000);
  const [first, second] = history.samples;
  assert.equal(history.samples.length, 90);
  assert.equal((second?.atMs ?? 0) - (first?.atMs ?? 0), 10_000);
  const page = history.pages.get('/debug/history')?.(new URLSearchParams());
  assert.equal(JSON.parse(page?.body ?? '').at(-1).syncs, syncs);
  assert.ok((page?.body.length ?? 0) < 20_000);
  stop.abort();
  await running;
  assert.equal(clock.pending, 0);
});
