import { createHash } from 'node:crypto';
import type { KubernetesObject } from '../api/object.ts';
import { oncePerObject } from '../util/memo.ts';
import type { Deviation, Fault } from './faults.ts';
import { comparisonOf } from './faults.ts';
import type { FinalState } from './final-state.ts';
import { differenceOf, finalStateOf } from './final-state.ts';
import type { ChangeRecord } from './history.ts';
import type { BrokenInvariant, LoggedError, Plan, TraceEntry } from './schedule.ts';
import type { FinalObjects, ScenarioPart } from './scenario-objects.ts';
import { changesOwnObjectsOnly } from './scenario-objects.ts';
import type { World } from './world.ts';
import { withoutFaults } from './schedule.ts';

/** What happened in one schedule. */
export interface FinishedRun {
  /** The action of the scenario before which it ended; undefined if all actions ran. */
  readonly stop: string | undefined;
  readonly trace: readonly TraceEntry[];
  readonly changes: readonly ChangeRecord[];
  readonly finalState: FinalState;
  readonly ending: 'quiet' | 'busy' | 'endless';
  readonly broken: BrokenInvariant | undefined;
  /** Writes after nothing was left to do, if the steady state was watched. */
  readonly steadyWrites: readonly ChangeRecord[];
  /** Errors that the processes logged meanwhile. */
  readonly steadyErrors: readonly LoggedError[];
  /** Leases of the processes, if there are several. */
  readonly isElected: boolean;
  /** Number of steps before nothing was left to do. */
  readonly settledSteps: number;
  /** Faults that struck. */
  readonly deviations: readonly Deviation[];
  /** Digest of all steps, their times and all writes. */
  readonly hash: string;
}

/** A part of the scenario without faults. Its schedules with faults are compared with it. */
export interface Baseline extends ScenarioPart {
  readonly expected: FinishedRun;
  readonly final: FinalObjects;
  /** Whether the final objects can be created at once instead. */
  readonly canStartFresh: boolean;
}

/** Time without activity after which a schedule is over, in milliseconds. */
const QUIET_MS = 30_000;

/** Time after which each pending retry has run: retries have delays of up to five minutes. */
const MAX_RETRY_MS = 400_000;

/** Longer times for schedules whose final state differs: retries have delays of up to five minutes. */
const PATIENCE_MS = [120_000, 400_000, 1_000_000];

/** Time in which the steady state must last in a schedule without faults, in milliseconds. */
const STEADY_MS = 900_000;

/** Maximum duration of a schedule, in milliseconds of virtual time. */
const LIMIT_MS = 3_600_000;

/**
 * Runs one schedule of a part of the scenario to its end. If there is a `baseline` with whose final state it is compared, it
 * waits longer until that is reached. Otherwise, it watches the steady state.
 */
export async function runSchedule(
  world: World,
  { actions, stop }: ScenarioPart,
  plan: Plan,
  baseline?: Baseline,
): Promise<FinishedRun> {
  const schedule = world.startSchedule(actions, baseline?.final);
  let ending: FinishedRun['ending'] = await schedule.run(plan, {
    quietMs: QUIET_MS,
    limitMs: LIMIT_MS,
  });
  const deviations = deviationsOf(schedule.trace);
  const comparison = comparisonOf(deviations);
  const goal = comparison === 'none' ? undefined : baseline?.expected.finalState;
  const settledSteps = schedule.trace.length;
  const isLasting = goal === undefined && ending === 'quiet';
  const pass = async (limitMs: number) => {
    const later = await schedule.run(withoutFaults, { quietMs: Infinity, limitMs });
    ending = later === 'endless' ? later : ending;
  };
  // One of several faults can have delayed a retry beyond the quiet time.
  if (isLasting && deviations.length > 1) await pass(MAX_RETRY_MS);
  const settledWrites = world.history.changes.length;
  const settledErrors = schedule.errors.length;
  if (isLasting) await pass(STEADY_MS);
  const steadyWrites = isLasting ? world.history.changes.slice(settledWrites) : [];
  const steadyErrors = isLasting ? schedule.errors.slice(settledErrors) : [];
  let finalState = finalStateOf(world.history);
  for (const quietMs of goal ? PATIENCE_MS : []) {
    if (!goal || ending !== 'quiet' || !differenceOf(goal, finalState, comparison)) break;
    const later = await schedule.run(withoutFaults, { quietMs, limitMs: quietMs });
    ending = later === 'endless' ? later : ending;
    finalState = finalStateOf(world.history);
  }
  const { trace, broken } = schedule;
  const { changes } = world.history;
  const hash = hashOf(trace, changes);
  const settled = { steadyWrites, steadyErrors, settledSteps, isElected: world.isElected };
  return { stop, trace, changes, finalState, ending, broken, ...settled, deviations, hash };
}

/** Runs a part of the scenario without faults. */
export async function baselineOf(world: World, part: ScenarioPart): Promise<Baseline> {
  const expected = await runSchedule(world, part, withoutFaults);
  const isLong = Object.keys(part.actions).length > 1;
  const canStartFresh = isLong && changesOwnObjectsOnly(world.history);
  return { ...part, expected, final: world.finalObjects(), canStartFresh };
}

function deviationsOf(trace: readonly TraceEntry[]): Deviation[] {
  return trace.flatMap(({ fault, at, nth }) => (fault === undefined ? [] : [{ fault, at, nth }]));
}

/** Returns the plan in which exactly these faults strike. */
export function planOf(deviations: readonly Deviation[]): Plan {
  if (deviations.length === 0) return withoutFaults;
  const faults = new Map<string, Fault>(
    deviations.map(({ fault, at, nth }) => [`${at} #${nth}`, fault]),
  );
  return (_, at, nth) => faults.get(`${at} #${nth}`);
}

/** Returns who wrote which objects in which order, as a text. */
export function historyOf({ changes }: FinishedRun): string {
  return changes
    .map(({ by, verb, resource, object }) => `${by} ${verb} ${resource} ${object.metadata.name}`)
    .join('\n');
}

/** Returns the text of an object without `managedFields`, half of it, which follow from the writes. */
const contentOf = oncePerObject((object: KubernetesObject): string => {
  const { managedFields: _, ...metadata } = object.metadata;
  return JSON.stringify({ ...object, metadata });
});

function hashOf(trace: readonly TraceEntry[], changes: readonly ChangeRecord[]): string {
  const steps = trace.map(({ at, atMs, fault }) => `${atMs} ${at} ${fault ?? ''}`);
  const writes = changes.map(({ by, verb, object }) => `${by} ${verb} ${contentOf(object)}`);
  return createHash('sha256')
    .update([...steps, ...writes].join('\n'))
    .digest('hex');
}
