import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addCauses, formatCause, MAX_CAUSES } from '../../../src/workqueue/queue-item.ts';
import type { Causes } from '../../../src/workqueue/queue-item.ts';

const none = (): Causes => ({ causes: [], omittedCauses: 0 });

test('merges equal causes in the order of their first addition', () => {
  const tally = none();
  addCauses(tally, 'Pod a deleted');
  addCauses(tally, 'Pod b deleted');
  addCauses(tally, [
    { text: 'Pod a deleted', times: 4 },
    { text: 'postponed', times: 1 },
  ]);
  assert.deepEqual(tally.causes.map(formatCause), [
    'Pod a deleted (5 times)',
    'Pod b deleted',
    'postponed',
  ]);
});

test('merges the changed fields of equal causes from the first value to the last', () => {
  const tally = none();
  addCauses(tally, 'Pod a changed', [
    { field: '.a', before: '1', after: '2' },
    { field: '.b', after: '1' },
  ]);
  addCauses(tally, 'Pod a changed', [
    { field: '.a', before: '2', after: '3' },
    { field: '.b', before: '1' },
  ]);
  addCauses(tally, 'Pod a changed');
  assert.deepEqual(tally.causes, [
    {
      text: 'Pod a changed',
      times: 3,
      changes: [{ field: '.a', before: '1', after: '3' }, { field: '.b' }],
    },
  ]);
});

test('counts the additions of omitted causes', () => {
  const tally = none();
  for (let at = 0; at < MAX_CAUSES; at++) addCauses(tally, `cause ${at}`);
  addCauses(tally, [{ text: 'one more', times: 3 }]);
  addCauses(tally, 'and another');
  addCauses(tally, 'cause 0');
  assert.equal(tally.causes.length, MAX_CAUSES);
  assert.deepEqual([tally.causes[0]?.times, tally.omittedCauses], [2, 4]);
});
