import type { KubernetesObject } from '../api/object.ts';
import { keyOf } from '../api/object-key.ts';
import { isBackgroundResource } from './api-call.ts';
import { comparisonOf } from './faults.ts';
import type { Deviation, Fault } from './faults.ts';
import { differenceOf } from './final-state.ts';
import type { FinishedRun } from './finished-run.ts';
import type { ChangeRecord } from './history.ts';
import {
  changedOthers,
  createdForDeleted,
  createdTwice,
  leftBehind,
  removedAnnotations,
  removedFinalizers,
  wroteWithoutLease,
} from './ownership-rules.ts';
import { describeChange, isByProcess, pluralOf } from './rule.ts';
import { hidesCollision, neglectsTwin, outdatedStatus, readyTooEarly } from './status-rules.ts';

/** Something that should have held. */
export interface Violation {
  /** The rule, as a sentence. */
  readonly rule: string;
  /** What was observed instead. */
  readonly detail: string;
}

/** Number of equal requests within a minute that is too much, beyond those of the undisturbed schedule. */
const MAX_REQUESTS_IN_MINUTE = 100;

/** Writes of one object by processes that each fault may cause beyond those of the undisturbed schedule. */
const WRITES_PER_FAULT = 10;

/** The same if a process has an older view for a while. */
const WRITES_PER_BLINDNESS = 200;

/** Writes of one object in the steady state before an action: the action can be that time passes until they are due. */
const TIMED_WRITES = 3;

const BLINDING: ReadonlySet<Fault> = new Set<Fault>([
  'delay',
  'stale',
  'late',
  'freeze',
  'silence',
]);

/**
 * A rule for all controllers.
 *
 * @param expected the undisturbed schedule, with which others are compared
 */
type Oracle = (run: FinishedRun, expected: FinishedRun) => string | undefined;

const ORACLES: Readonly<Record<string, Oracle>> = {
  'nothing is created twice': createdTwice,
  'only own objects are changed or deleted': changedOthers,
  'annotations of other clients are kept': removedAnnotations,
  'finalizers of others are kept': removedFinalizers,
  'only the leader writes': wroteWithoutLease,
  'the writes of each object are bounded': tooManyWrites,
  'retries have a backoff': retriesTooOften,
  'the controllers settle': neverSettles,
  'nothing is written in steady state': writesInSteadyState,
  'syncs succeed in steady state': failsInSteadyState,
  'an object is ready after its owned objects': readyTooEarly,
  'observedGeneration is current': outdatedStatus,
  'nothing is created for an object that is being deleted': createdForDeleted,
  'nothing is left of deleted objects': leftBehind,
  'the status shows a name collision': hidesCollision,
  'a second object is treated like the first': neglectsTwin,
  'the final state is that of a run without faults': otherFinalState,
};

/** Returns the first violation of a schedule, if any. */
export function violationOf(run: FinishedRun, expected: FinishedRun): Violation | undefined {
  const { broken } = run;
  if (broken) return { rule: broken.name, detail: broken.detail };
  for (const [rule, oracle] of Object.entries(ORACLES)) {
    const detail = oracle(run, expected);
    if (detail !== undefined) return { rule, detail };
  }
  return undefined;
}

function tooManyWrites(run: FinishedRun, expected: FinishedRun): string | undefined {
  const usual = writesByObject(expected.changes);
  for (const [what, count] of writesByObject(run.changes)) {
    const allowed = (usual.get(what) ?? 0) + allowedWrites(run.deviations);
    if (run !== expected && count > allowed) {
      return `${count} writes of ${what}; without faults ${usual.get(what) ?? 0}`;
    }
  }
  return undefined;
}

function allowedWrites(deviations: readonly Deviation[]): number {
  return deviations.reduce(
    (sum, { fault }) => sum + (BLINDING.has(fault) ? WRITES_PER_BLINDNESS : WRITES_PER_FAULT),
    WRITES_PER_FAULT,
  );
}

function writesByObject(changes: readonly ChangeRecord[]): ReadonlyMap<string, number> {
  const writes = new Map<string, number>();
  for (const change of changes) {
    if (!isByProcess(change) || isBackgroundResource(change.resource)) continue;
    const what = objectOf(change);
    writes.set(what, (writes.get(what) ?? 0) + 1);
  }
  return writes;
}

function objectOf({ resource, object }: ChangeRecord): string {
  return `${pluralOf(resource)} ${nameIn(object)}`;
}

function neverSettles(run: FinishedRun): string | undefined {
  if (run.ending === 'quiet') return undefined;
  const [most] = [...writesByObject(run.changes)].sort(([, a], [, b]) => b - a);
  const steps = `${run.trace.length} steps`;
  return most ? `after ${steps}, ${most[1]} of them writes of ${most[0]}` : `after ${steps}`;
}

function writesInSteadyState(run: FinishedRun): string | undefined {
  const writes = writesByObject(run.steadyWrites);
  const allowed = run.stop === undefined ? 0 : TIMED_WRITES;
  const later = run.steadyWrites.filter((change) => (writes.get(objectOf(change)) ?? 0) > allowed);
  const [first] = later;
  return (
    first &&
    `${later.length} writes after everything was done: ${first.by} ${describeChange(first)}`
  );
}

function otherFinalState(run: FinishedRun, expected: FinishedRun): string | undefined {
  return differenceOf(expected.finalState, run.finalState, comparisonOf(run.deviations));
}

/** Without faults, syncs fail even when nothing changes any more. */
function failsInSteadyState(run: FinishedRun, expected: FinishedRun): string | undefined {
  const [first] = run === expected ? run.steadyErrors : [];
  return first && `${first.by} logs "${first.message}"`;
}

/** A request is sent too often in a minute. A process that does not see the effect of its writes may repeat them. */
function retriesTooOften(run: FinishedRun, expected: FinishedRun): string | undefined {
  const allowed = Math.max(MAX_REQUESTS_IN_MINUTE, allowedWrites(run.deviations));
  const usual = run === expected ? undefined : requestsInMinute(expected);
  for (const [label, count] of requestsInMinute(run)) {
    if (count <= allowed + (usual?.get(label) ?? 0)) continue;
    return `${count} requests "${label}" within a minute`;
  }
  return undefined;
}

/** Returns the maximum number of equal requests of a process within a minute. */
function requestsInMinute({ trace }: FinishedRun): ReadonlyMap<string, number> {
  const requests = trace.filter(
    ({ step }) => step.kind === 'request' && isByProcess({ by: step.owner }),
  );
  const most = new Map<string, number>();
  for (const [at, all] of Map.groupBy(requests, (entry) => entry.at)) {
    let first = 0;
    for (const [index, { atMs }] of all.entries()) {
      while ((all[first]?.atMs ?? atMs) < atMs - 60_000) first++;
      most.set(at, Math.max(most.get(at) ?? 0, index - first + 1));
    }
  }
  return most;
}

function nameIn({ metadata }: KubernetesObject): string {
  const { namespace, generateName, name } = metadata;
  return keyOf({ metadata: { namespace, name: generateName ? `${generateName}*` : name } });
}
