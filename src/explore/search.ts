import type { Deviation, Fault } from './faults.ts';
import { FAULTS, isApplicable } from './faults.ts';
import type { FinishedRun } from './finished-run.ts';
import { historyOf, planOf } from './finished-run.ts';
import type { Plan, TraceEntry } from './schedule.ts';

/** Faults after which a process has forgotten or missed something. */
const FORGETTING: ReadonlySet<Fault> = new Set<Fault>(['crash', 'reset', 'late', 'delay']);

/** Faults that make a view of a process older than the state. */
const STALENESS: readonly Fault[] = ['stale', 'delay'];

/** Faults that are the second of a pair. */
const SECOND: readonly Fault[] = [...STALENESS, 'crash', 'late', 'reset'];

/** Number of steps after a fault in which a stale view is tried with it. */
const NEAR_STEPS = 4;

/** Number of times that the server rejects a request. */
const REJECTIONS = 3;

/** Maximum number of faults in a random schedule. */
const MAX_RANDOM_FAULTS = 4;

/** Maximum number of faults in a schedule that continues another one. */
const MAX_CONTINUED_FAULTS = 6;

/**
 * Yields the plans of schedules and receives their runs: first each fault in each step of the undisturbed schedule since the
 * last action but one, the faults by turns, and each loss followed by the pairs of it and a stale view; then all other pairs, random
 * faults, and one more fault in a schedule that had another history than all before it, by turns, without end.
 */
export function* search(
  expected: FinishedRun,
  faults: readonly Fault[],
  random: () => number,
): Generator<Plan, void, FinishedRun> {
  const pairs: (readonly Deviation[])[] = [];
  const discoveries = new Discoveries(faults);
  discoveries.add(expected);
  const isSelected = (fault: Fault) => faults.includes(fault);
  const steps = expected.trace.slice(0, expected.settledSteps);
  const newSteps = steps.slice(lastActionsIndex(steps));
  const singles = FAULTS.filter(isSelected).map((fault) => {
    const deviations = deviationsIn(newSteps, [fault]);
    shuffle(deviations, random);
    return { fault, deviations, near: [] as Deviation[][] };
  });
  // Each fault in one of its steps, then each in another one.
  for (let left = singles; left.length > 0;) {
    for (const { fault, deviations, near } of left) {
      const pair = near.shift();
      if (pair) {
        discoveries.add(yield planOf(pair));
        continue;
      }
      const deviation = deviations.pop();
      if (!deviation) continue;
      const run = yield planOf(typeof fault === 'number' ? repeated(deviation) : [deviation]);
      discoveries.add(run);
      if (!FORGETTING.has(fault)) continue;
      const seconds = deviationsAfter(run, STALENESS.filter(isSelected), NEAR_STEPS);
      near.push(...seconds.map((second) => [deviation, second]));
      const others = deviationsAfter(run, SECOND.filter(isSelected));
      pairs.push(...others.map((second) => [deviation, second]));
    }
    left = left.filter(({ deviations, near }) => deviations.length + near.length > 0);
  }
  shuffle(pairs, random);
  for (;;) {
    const pair = pairs.pop();
    if (pair) discoveries.add(yield planOf(pair));
    const length = steps.filter(({ step }) => step.isFaulty).length;
    discoveries.add(yield randomPlan(length, faults, random));
    const continued = discoveries.continued(random);
    if (continued) discoveries.add(yield continued);
  }
}

/**
 * Returns the index of the last action but one, or 0 if that is the first action. Faults in the steps before it strike in
 * schedules with fewer actions.
 */
function lastActionsIndex(steps: readonly TraceEntry[]): number {
  const actions = [...steps.keys()].filter((index) => steps[index]?.step.kind === 'action');
  return actions.at(-2) ?? 0;
}

/** Returns the faults that can strike after the last one of a run, in the next `maxSteps` steps. */
function deviationsAfter(
  { deviations, trace, settledSteps }: FinishedRun,
  faults: readonly Fault[],
  maxSteps = Infinity,
): Deviation[] {
  const start = trace.findLastIndex(({ fault }) => fault !== undefined) + 1;
  const later = trace.slice(start, Math.min(start + maxSteps, settledSteps));
  // A postponed step is in the trace twice.
  const isOther = ({ at, nth }: Deviation) =>
    !deviations.some((struck) => struck.at === at && struck.nth === nth);
  return deviationsIn(later, faults).filter(isOther);
}

/** Returns each fault in each step in which it has an effect, and another one than in the step before. */
function deviationsIn(trace: readonly TraceEntry[], faults: readonly Fault[]): Deviation[] {
  return trace.flatMap((entry, index) =>
    faults.flatMap((fault) => {
      const { step, at, nth } = entry;
      const isNew = isApplicable(fault, step) && !isKnown(fault, entry, trace[index - 1]);
      return isNew ? [{ fault, at, nth }] : [];
    }),
  );
}

/**
 * Returns whether a fault leads to a schedule that is known. A step that overtakes nothing cannot be late. A crash forgets what
 * a process has just received, and the requests that it sent therefore.
 */
function isKnown(fault: Fault, entry: TraceEntry, before: TraceEntry | undefined): boolean {
  if (fault === 'late') return entry.isAlone;
  if (fault !== 'crash' || !before) return false;
  const { kind, owner } = before.step;
  const isReceived = kind === 'response' || kind === 'event';
  return isReceived && owner === entry.step.owner && before.atMs === entry.atMs;
}

/** Rejects a request several times in a row: one rejection is often repaired by the next event. */
function repeated(deviation: Deviation): readonly Deviation[] {
  return Array.from({ length: REJECTIONS }, (_, index) => ({
    ...deviation,
    nth: deviation.nth + index,
  }));
}

/** Lets up to four faults strike in random steps, half of them only in the order of steps. */
function randomPlan(steps: number, faults: readonly Fault[], random: () => number): Plan {
  const count = 2 + Math.floor(random() * (MAX_RANDOM_FAULTS - 1));
  const likelihood = Math.min(0.5, count / Math.max(1, steps));
  let left = count;
  return (step) => {
    if (left === 0 || random() >= likelihood) return undefined;
    const possible = faults.filter((fault) => isApplicable(fault, step));
    const late = random() < 0.5 ? possible.find((fault) => fault === 'late') : undefined;
    const fault = late ?? possible[Math.floor(random() * possible.length)];
    if (fault !== undefined) left--;
    return fault;
  };
}

/** The schedules with histories that no schedule before had. */
class Discoveries {
  readonly #faults: readonly Fault[];
  readonly #histories = new Set<string>();
  /** The faults of each schedule, and those that can strike after the last one. */
  readonly #found: {
    readonly struck: readonly Deviation[];
    readonly later: readonly Deviation[];
  }[] = [];

  constructor(faults: readonly Fault[]) {
    this.#faults = faults;
  }

  add(run: FinishedRun): void {
    const { deviations: struck } = run;
    const { size } = this.#histories;
    this.#histories.add(historyOf(run));
    if (this.#histories.size === size || struck.length === 0) return;
    if (struck.length >= MAX_CONTINUED_FAULTS) return;
    const later = deviationsAfter(run, this.#faults);
    if (later.length > 0) this.#found.push({ struck, later });
  }

  /** Returns the plan of one of the schedules with one more fault. */
  continued(random: () => number): Plan | undefined {
    const { struck, later } = oneOf(this.#found, random) ?? {};
    const next = later && oneOf(later, random);
    return struck && next && planOf([...struck, next]);
  }
}

function oneOf<T>(items: readonly T[], random: () => number): T | undefined {
  return items[Math.floor(random() * items.length)];
}

function shuffle(items: unknown[], random: () => number): void {
  for (let index = items.length - 1; index > 0; index--) {
    const other = Math.floor(random() * (index + 1));
    [items[index], items[other]] = [items[other], items[index]];
  }
}
