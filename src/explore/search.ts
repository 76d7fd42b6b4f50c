import type { Deviation, Fault } from './faults.ts';
import { FAULTS, isApplicable } from './faults.ts';
import type { FinishedRun } from './finished-run.ts';
import { planOf } from './finished-run.ts';
import type { Plan, TraceEntry } from './world.ts';

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

/**
 * Yields the plans of schedules and receives their runs: first each fault in each step of the undisturbed schedule, each
 * loss followed by the pairs of it and a stale view; then all other pairs and random faults by turns, without end.
 */
export function* search(
  expected: FinishedRun,
  faults: readonly Fault[],
  random: () => number,
): Generator<Plan, void, FinishedRun> {
  const pairs: (readonly Deviation[])[] = [];
  const isSelected = (fault: Fault) => faults.includes(fault);
  const steps = expected.trace.slice(0, expected.settledSteps);
  for (const fault of FAULTS.filter(isSelected)) {
    for (const deviation of deviationsIn(steps, [fault])) {
      const run = yield planOf(typeof fault === 'number' ? repeated(deviation) : [deviation]);
      if (!FORGETTING.has(fault)) continue;
      const start = run.trace.findIndex(({ fault: struck }) => struck !== undefined) + 1;
      const later = run.trace.slice(start, run.settledSteps);
      // A postponed step is in the trace twice.
      const isOther = ({ at, nth }: Deviation) => at !== deviation.at || nth !== deviation.nth;
      const near = deviationsIn(later.slice(0, NEAR_STEPS), STALENESS.filter(isSelected));
      for (const second of near.filter(isOther)) yield planOf([deviation, second]);
      const others = deviationsIn(later, SECOND.filter(isSelected)).filter(isOther);
      pairs.push(...others.map((second) => [deviation, second]));
    }
  }
  shuffle(pairs, random);
  for (;;) {
    const pair = pairs.pop();
    if (pair) yield planOf(pair);
    yield randomPlan(steps.filter(({ step }) => step.isFaulty).length, faults, random);
  }
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

function shuffle(items: unknown[], random: () => number): void {
  for (let index = items.length - 1; index > 0; index--) {
    const other = Math.floor(random() * (index + 1));
    [items[index], items[other]] = [items[other], items[index]];
  }
}
