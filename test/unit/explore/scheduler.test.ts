import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Scheduler } from '../../../src/explore/scheduler.ts';
import type { Step } from '../../../src/explore/step.ts';

function step(label: string): Step {
  return { kind: 'response', owner: 'controller', label, isFaulty: true, run: () => undefined };
}

it('waits for the end of a freeze, even if a step of the process was postponed', () => {
  const scheduler = new Scheduler();
  const [first, late] = [step('first'), step('late')];
  scheduler.postpone(late);
  scheduler.post(first);
  scheduler.freeze('controller');
  assert.deepEqual([scheduler.isReady, scheduler.take()], [false, undefined]);
  scheduler.time.fireNext();
  assert.deepEqual([scheduler.take(), scheduler.take()], [first, late]);
});
