import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Job, Pod } from '../../../../src/api/builtin.ts';
import {
  completedCount,
  formatIndexes,
  INDEX_LABEL,
  missingIndexes,
} from '../../../../src/cluster/workloads/job-index.ts';

function jobOf(completions: number, completedIndexes: string): Job {
  return { spec: { completions }, status: { completedIndexes } } as Job;
}

function podsOf(...indexes: readonly (number | string)[]): Pod[] {
  return indexes.map(
    (index) => ({ metadata: { annotations: { [INDEX_LABEL]: `${index}` } } }) as unknown as Pod,
  );
}

test('indexes that have completed are those of the status and of Pods, below the completions', () => {
  for (const [completions, status, succeeded, text, count] of [
    [5, '', [], '', 0],
    [5, '', [0, 1, 2, 4], '0-2,4', 4],
    [5, '0-1', [2], '0-2', 3],
    [5, '0,1', [3, 3], '0,1,3', 3],
    [5, '4', [5, 9, 'x'], '4', 1],
    [9, '1-3,6', [2, 5, 7], '1-3,5-7', 6],
  ] as const) {
    const job = jobOf(completions, status);
    const pods = podsOf(...succeeded);
    assert.equal(formatIndexes(job, pods), text);
    assert.equal(completedCount(job, pods), count, text);
  }
});

test('the lowest indexes without an active or succeeded Pod are missing', () => {
  const job = jobOf(6, '1');
  assert.deepEqual(missingIndexes(job, podsOf(0), podsOf(3), 10), [2, 4, 5]);
  assert.deepEqual(missingIndexes(job, podsOf(0), podsOf(3), 2), [2, 4]);
  assert.deepEqual(missingIndexes(jobOf(2, '0-1'), [], [], 5), []);
});
