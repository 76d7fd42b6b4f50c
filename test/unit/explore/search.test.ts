import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { FinishedRun } from '../../../src/explore/finished-run.ts';
import type { ChangeRecord } from '../../../src/explore/history.ts';
import { search } from '../../../src/explore/search.ts';
import type { Step } from '../../../src/explore/step.ts';
import type { Plan } from '../../../src/explore/schedule.ts';
import { withoutFaults } from '../../../src/explore/schedule.ts';
import { seededRandom } from '../../../src/util/seeded-random.ts';

const LABELS = Array.from({ length: 40 }, (_, index) => `step ${index}`);

/** Returns the run of a schedule with 40 steps. If it `differs`, each fault leads to a write. */
function runOf(plan: Plan, differs: boolean): FinishedRun {
  const trace = LABELS.map((label) => {
    const run = () => undefined;
    const step: Step = { kind: 'response', owner: 'controller', label, isFaulty: true, run };
    const fault = plan(step, label, 1);
    return { step, at: label, nth: 1, atMs: 0, fault, writes: 0, isAlone: true };
  });
  const deviations = trace.flatMap(({ at, nth, fault }) => (fault ? [{ fault, at, nth }] : []));
  const changes = (differs ? deviations : []).map(({ at }, request): ChangeRecord => {
    const metadata = {
      name: at,
      uid: at,
      resourceVersion: '1',
      creationTimestamp: '2026-01-01T00:00:00Z',
    };
    return {
      verb: 'create',
      by: 'controller',
      atMs: 0,
      sentMs: 0,
      resource: '/configmaps',
      request,
      object: { apiVersion: 'v1', kind: 'ConfigMap', metadata },
      previous: undefined,
    };
  });
  return {
    stop: undefined,
    trace,
    changes,
    finalState: { lines: [], living: [], garbage: [], created: new Set(), deleted: new Set() },
    ending: 'quiet',
    broken: undefined,
    steadyWrites: [],
    steadyErrors: [],
    settledSteps: trace.length,
    isElected: false,
    deviations,
    hash: '',
  };
}

/** Returns the maximum number of faults in the first 600 schedules. */
function mostFaults(differs: boolean): number {
  const schedules = search(runOf(withoutFaults, differs), ['silence'], seededRandom(1));
  let [most, next] = [0, schedules.next()];
  for (let count = 0; count < 600 && !next.done; count++) {
    const run = runOf(next.value, differs);
    most = Math.max(most, run.deviations.length);
    next = schedules.next(run);
  }
  return most;
}

it('adds faults, up to six, to schedules that had a new history', () => {
  assert.equal(mostFaults(true), 6);
});

it('adds no faults to schedules with a known history', () => {
  assert.ok(mostFaults(false) <= 4);
});
