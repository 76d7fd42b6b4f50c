import { controllerOf } from '../api/metadata.ts';
import type { KubernetesObject } from '../api/object.ts';
import { keyOf } from '../api/object-key.ts';
import { isBackgroundResource } from './api-call.ts';
import { isComparable } from './faults.ts';
import { PROCESS } from './explored-process.ts';
import { stateDifference } from './final-state.ts';
import type { FinishedRun } from './finished-run.ts';
import type { ChangeRecord } from './history.ts';

/** Something that should have held. */
export interface Violation {
  /** The rule, as a sentence. */
  readonly rule: string;
  /** What was observed instead. */
  readonly detail: string;
}

/** Writes of one object by processes that each fault may cause beyond those of the undisturbed schedule. */
const WRITES_PER_FAULT = 10;

/**
 * A rule for all controllers.
 *
 * @param expected the undisturbed schedule, with which others are compared
 */
type Oracle = (run: FinishedRun, expected: FinishedRun) => string | undefined;

const ORACLES: Readonly<Record<string, Oracle>> = {
  'nothing is created twice': createdTwice,
  'only own objects are changed or deleted': changedOthers,
  'the writes of each object are bounded': tooManyWrites,
  'the controllers settle': neverSettles,
  'nothing is written in steady state': writesInSteadyState,
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

/** More objects of one owner exist at once than in the undisturbed schedule. */
function createdTwice(run: FinishedRun, expected: FinishedRun): string | undefined {
  const most = mostOwned(expected.changes);
  for (const [what, { count, names }] of mostOwned(run.changes)) {
    const allowed = most.get(what)?.count ?? 0;
    if (allowed > 0 && count > allowed) {
      return `${count} ${what} at once (${names.join(', ')}); without faults at most ${allowed}`;
    }
  }
  return undefined;
}

interface Owned {
  readonly count: number;
  readonly names: readonly string[];
}

/** Returns the maximum number of objects that each owner had at once, by resource and owner. */
function mostOwned(changes: readonly ChangeRecord[]): ReadonlyMap<string, Owned> {
  const living = new Map<string, Map<string, string>>();
  const most = new Map<string, Owned>();
  for (const { resource, object, verb } of changes) {
    const owner = controllerOf(object);
    if (!owner) continue;
    const what = `${pluralOf(resource)} of ${owner.kind} ${owner.name}`;
    const owned = living.get(what) ?? new Map<string, string>();
    living.set(what, owned);
    if (verb === 'delete' || object.metadata.deletionTimestamp !== undefined) {
      owned.delete(object.metadata.uid);
    } else owned.set(object.metadata.uid, object.metadata.name);
    if (owned.size > (most.get(what)?.count ?? 0)) {
      most.set(what, { count: owned.size, names: [...owned.values()] });
    }
  }
  return most;
}

/** A process changed or deleted an object that has no owner and that it did not create, unlike in the undisturbed schedule. */
function changedOthers(run: FinishedRun, expected: FinishedRun): string | undefined {
  const usual = new Set(foreignWrites(expected).map(({ resource }) => resource));
  const change = foreignWrites(run).find(({ resource }) => !usual.has(resource));
  return change && `${change.by} ${describeChange(change)}, which it did not create`;
}

function foreignWrites({ changes }: FinishedRun): readonly ChangeRecord[] {
  const own = new Set<string>();
  return changes.filter((change) => {
    const { by, verb, object, previous } = change;
    const { uid } = object.metadata;
    if (isByProcess(change) && verb === 'create') own.add(uid);
    return (
      isByProcess({ by }) && previous !== undefined && !own.has(uid) && !controllerOf(previous)
    );
  });
}

function tooManyWrites(run: FinishedRun, expected: FinishedRun): string | undefined {
  const usual = writesByObject(expected.changes);
  for (const [what, count] of writesByObject(run.changes)) {
    const allowed = (usual.get(what) ?? 0) + WRITES_PER_FAULT * (1 + run.deviations.length);
    if (run !== expected && count > allowed) {
      return `${count} writes of ${what}; without faults ${usual.get(what) ?? 0}`;
    }
  }
  return undefined;
}

function writesByObject(changes: readonly ChangeRecord[]): ReadonlyMap<string, number> {
  const writes = new Map<string, number>();
  for (const change of changes) {
    if (!isByProcess(change) || isBackgroundResource(change.resource)) continue;
    const what = `${pluralOf(change.resource)} ${nameIn(change.object)}`;
    writes.set(what, (writes.get(what) ?? 0) + 1);
  }
  return writes;
}

function neverSettles(run: FinishedRun): string | undefined {
  if (run.ending === 'quiet') return undefined;
  const [most] = [...writesByObject(run.changes)].sort(([, a], [, b]) => b - a);
  const steps = `${run.trace.length} steps`;
  return most ? `after ${steps}, ${most[1]} of them writes of ${most[0]}` : `after ${steps}`;
}

function writesInSteadyState(run: FinishedRun): string | undefined {
  const later = run.steadyWrites.filter(
    (change) => isByProcess(change) && !isBackgroundResource(change.resource),
  );
  const [first] = later;
  return (
    first &&
    `${later.length} writes after everything was done: ${first.by} ${describeChange(first)}`
  );
}

function otherFinalState(run: FinishedRun, expected: FinishedRun): string | undefined {
  if (!isComparable(run.deviations)) return undefined;
  const difference = stateDifference(expected.finalState, run.finalState);
  return difference === '' ? undefined : difference;
}

function isByProcess({ by }: Pick<ChangeRecord, 'by'>): boolean {
  return by.startsWith(PROCESS);
}

/** Returns the words of a story: `creates pods default/web-0`. */
export function describeChange({ verb, resource, object }: ChangeRecord): string {
  return `${verb}s ${pluralOf(resource)} ${keyOf(object)}`;
}

function pluralOf(resource: string): string {
  return resource.slice(resource.indexOf('/') + 1);
}

function nameIn({ metadata }: KubernetesObject): string {
  const { namespace, generateName, name } = metadata;
  return keyOf({ metadata: { namespace, name: generateName ? `${generateName}*` : name } });
}
