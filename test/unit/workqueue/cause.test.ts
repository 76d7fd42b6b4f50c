import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addCauses, causesOf, formatCause, MAX_CAUSES } from '../../../src/workqueue/cause.ts';
import type { Causes } from '../../../src/workqueue/cause.ts';

const none = (): Causes => ({ counts: new Map(), omitted: 0 });

test('equal causes are one that came several times, in the order of their first ones', () => {
  const causes = none();
  addCauses(causes, 'Pod a deleted');
  addCauses(causes, 'Pod b deleted');
  addCauses(causes, [
    { text: 'Pod a deleted', times: 4 },
    { text: 'postponed', times: 1 },
  ]);
  assert.deepEqual(causesOf(causes).map(formatCause), [
    'Pod a deleted (5 times)',
    'Pod b deleted',
    'postponed',
  ]);
});

test('what finds no place is counted, as often as it came', () => {
  const causes = none();
  for (let at = 0; at < MAX_CAUSES; at++) addCauses(causes, `cause ${at}`);
  addCauses(causes, [{ text: 'one more', times: 3 }]);
  addCauses(causes, 'and another');
  addCauses(causes, 'cause 0');
  assert.equal(causesOf(causes).length, MAX_CAUSES);
  assert.deepEqual([causesOf(causes)[0]?.times, causes.omitted], [2, 4]);
});
