import assert from 'node:assert/strict';
import { test } from 'node:test';
import { objectKey } from '../../../../src/api/object-key.ts';
import { RunHistory, RunRecorder } from '../../../../src/manager/history/run-history.ts';
import { hottest, slowest } from '../../../../src/manager/history/run-ranking.ts';
import type { SyncResult } from '../../../../src/workqueue/sync-report.ts';

/** A history of runs, given as times of their beginning and how long they took, by key. */
function historyOf(runs: Record<string, readonly (readonly [atMs: number, tookMs?: number])[]>) {
  const history = new RunHistory();
  for (const [name, ofKey] of Object.entries(runs)) {
    for (const [atMs, tookMs] of ofKey) {
      const run = {
        reconcileID: '0badcafe',
        causes: [{ text: `at ${atMs}`, times: 1 }],
        omittedCauses: 0,
        attempt: 1,
        delayedMs: 0,
        queuedMs: 0,
      };
      const recorder = new RunRecorder('count', objectKey('ns', name), run, [], atMs);
      history.began(recorder);
      if (tookMs === undefined) continue;
      const end: SyncResult = { result: 'done', tookMs };
      recorder.ended(end);
      history.ended(recorder);
    }
  }
  return history.all();
}

test('the slowest are ranked by their slowest run, with what caused that one', () => {
  const keys = historyOf({
    a: [
      [0, 5],
      [100, 900],
      [2000, 1],
    ],
    b: [[7, 300]],
    c: [[8]],
  });
  assert.deepEqual(
    slowest(keys, 5).map(({ key, tookMs, causes }) => [key, tookMs, causes[0]?.text]),
    [
      ['ns/a', 900, 'at 100'],
      ['ns/b', 300, 'at 7'],
    ],
  );
  assert.equal(slowest(keys, 1).length, 1);
});

test('the hottest run most often until now; one run is no habit, and heat goes away', () => {
  const keys = historyOf({
    once: [[59_999, 1]],
    steady: [
      [0, 1],
      [30_000, 1],
      [60_000, 1],
    ],
    burst: [
      [50_000, 1],
      [50_010, 1],
      [50_020, 1],
    ],
  });
  const ranking = (nowMs: number) =>
    hottest(keys, 5, nowMs).map(({ key, runsPerMinute }) => [key, Math.round(runsPerMinute)]);
  assert.deepEqual(ranking(60_000), [
    ['ns/burst', 12],
    ['ns/steady', 2],
  ]);
  assert.deepEqual(ranking(1_800_000), [
    ['ns/burst', 0],
    ['ns/steady', 0],
  ]);
  assert.deepEqual(hottest(keys, 1, 60_000)[0]?.causes, [{ text: 'at 50020', times: 1 }]);
});
