import { controllerOf, hasFinalizer } from '../api/metadata.ts';
import type { DeepReadonly, KubernetesObject, OwnerReference } from '../api/object.ts';
import { keyOf } from '../api/object-key.ts';
import { FOREGROUND } from '../cluster/lifecycle/owner-graph.ts';
import { isBackgroundResource } from './api-call.ts';
import { LEASE_NAME } from './explored-process.ts';
import type { FinishedRun } from './finished-run.ts';
import type { ChangeRecord } from './history.ts';
import { copiesIn, MARK } from './other-client.ts';
import { describeChange, isByProcess, pluralOf } from './rule.ts';

/** Time in which a process notices that it has lost its Lease, in milliseconds. */
const NOTICE_MS = 12_000;

/** Time after which a controller knows that an owner is being deleted, in milliseconds. */
const KNOWN_MS = 30_000;

/** More objects of one owner exist at once than in the undisturbed schedule. */
export function createdTwice(run: FinishedRun, expected: FinishedRun): string | undefined {
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
    const what = `${pluralOf(resource)} of ${nameOf(owner, object)}`;
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

function nameOf(owner: DeepReadonly<OwnerReference>, { metadata }: KubernetesObject): string {
  const { namespace = 'default' } = metadata;
  return `${owner.kind} ${namespace === 'default' ? '' : `${namespace}/`}${owner.name}`;
}

/**
 * A process changed or deleted an object that has no owner and that it did not create, unlike in the undisturbed schedule. It may
 * update the objects of users, such as their status.
 */
export function changedOthers(run: FinishedRun, expected: FinishedRun): string | undefined {
  const usual = new Set(foreignWrites(expected).map(({ resource }) => resource));
  const ofUsers = new Set(expected.changes.filter(isCreatedByUser).map(({ resource }) => resource));
  const copies = copiesIn(run.changes);
  const change = foreignWrites(run).find((each) => {
    const { resource, object } = each;
    const isUsual = usual.has(resource) || (ofUsers.has(resource) && !isDeletion(each));
    return !isUsual || copies.has(object.metadata.uid);
  });
  return change && `${change.by} ${describeChange(change)}, which it did not create`;
}

function isCreatedByUser({ verb, by, object }: ChangeRecord): boolean {
  return verb === 'create' && by === 'scenario' && !controllerOf(object);
}

function isDeletion({ verb, object, previous }: ChangeRecord): boolean {
  const { deletionTimestamp } = object.metadata;
  return (
    verb === 'delete' ||
    (deletionTimestamp !== undefined && previous?.metadata.deletionTimestamp === undefined)
  );
}

function foreignWrites({ changes }: FinishedRun): readonly ChangeRecord[] {
  const own = new Set<string>();
  let first: ChangeRecord | undefined;
  return changes.filter((change) => {
    if (first?.request !== change.request) first = change;
    // The server deletes a CRD that is being deleted with its last object.
    if (first.resource !== change.resource) return false;
    const { verb, object, previous } = change;
    const { uid } = object.metadata;
    if (isByProcess(change) && verb === 'create') own.add(uid);
    return (
      isByProcess(change) && previous !== undefined && !own.has(uid) && !controllerOf(previous)
    );
  });
}

/** A process removed an annotation of another client. */
export function removedAnnotations({ changes }: FinishedRun): string | undefined {
  const change = changes.find(
    (each) =>
      each.verb === 'update' &&
      isByProcess(each) &&
      hasMark(each.previous) &&
      !hasMark(each.object),
  );
  return change && `${change.by} ${describeChange(change)} without the annotation ${MARK}`;
}

function hasMark(object: KubernetesObject | undefined): boolean {
  return object?.metadata.annotations?.[MARK] !== undefined;
}

/** A process removed the finalizer of the garbage collector. */
export function removedFinalizers({ changes }: FinishedRun): string | undefined {
  const change = changes.find(
    (each) =>
      isByProcess(each) &&
      isForeground(each.previous) &&
      (each.verb === 'delete' || !isForeground(each.object)),
  );
  return change && `${change.by} ${describeChange(change)} without the finalizer ${FOREGROUND}`;
}

function isForeground(object: KubernetesObject | undefined): boolean {
  return object !== undefined && hasFinalizer(object, FOREGROUND);
}

/** A process that had lost its Lease sent a write, whether the server accepted it or not. */
export function wroteWithoutLease({ trace, changes, isElected }: FinishedRun): string | undefined {
  if (!isElected) return undefined;
  let holder: string | undefined;
  let sinceMs = 0;
  let seen = 0;
  for (const { step, atMs, writes } of trace) {
    for (const { resource, object, atMs: writtenMs } of changes.slice(seen, writes)) {
      if (resource !== 'coordination.k8s.io/leases' || object.metadata.name !== LEASE_NAME)
        continue;
      const { spec } = object as KubernetesObject & { spec?: { holderIdentity?: string } };
      if (spec?.holderIdentity !== holder) sinceMs = writtenMs;
      holder = spec?.holderIdentity;
    }
    seen = writes;
    const { kind, call, owner } = step;
    if (kind !== 'request' || !call?.isWrite || !step.isFaulty || holder === owner) continue;
    if (atMs - sinceMs <= NOTICE_MS) continue;
    const seconds = Math.round((atMs - sinceMs) / 1000);
    return `${owner} sends "${call.text}" ${seconds} s after ${holder} got the Lease`;
  }
  return undefined;
}

/** A process created an object long after its owner was deleted. */
export function createdForDeleted({ changes, deviations }: FinishedRun): string | undefined {
  // After other faults a process can be too far behind to know.
  if (!deviations.every(({ fault }) => fault === 'teardown' || fault === 'foreground')) return;
  const deletedMs = new Map<string, number>();
  for (const change of changes) {
    const { verb, object, atMs, sentMs } = change;
    const { uid, deletionTimestamp } = object.metadata;
    if (verb === 'delete' || deletionTimestamp !== undefined) {
      if (!deletedMs.has(uid)) deletedMs.set(uid, atMs);
    } else if (verb === 'create' && isByProcess(change)) {
      const owner = controllerOf(object);
      const sinceMs = sentMs - (deletedMs.get(owner?.uid ?? '') ?? Infinity);
      if (owner && sinceMs > KNOWN_MS) {
        return `${change.by} ${describeChange(change)}, ${Math.round(sinceMs / 1000)} s after the deletion of ${owner.kind} ${owner.name}`;
      }
    }
  }
  return undefined;
}

/** Something is left after a user has deleted everything, or a deleted object keeps its finalizer. */
export function leftBehind(run: FinishedRun): string | undefined {
  const isTeardown = run.deviations.some(
    ({ fault, at }) => (fault === 'teardown' || fault === 'foreground') && at.endsWith(': end'),
  );
  if (run.ending !== 'quiet') return undefined;
  const hasOrphan = run.deviations.some(({ fault }) => fault === 'orphan');
  const created = new Map<string, ChangeRecord>();
  const living = new Map<string, ChangeRecord>();
  for (const change of run.changes) {
    const { uid } = change.object.metadata;
    if (change.verb === 'create') created.set(uid, change);
    if (change.verb === 'delete') living.delete(uid);
    else living.set(uid, change);
  }
  for (const [uid, { resource, object }] of living) {
    const { deletionTimestamp, finalizers = [] } = object.metadata;
    const first = created.get(uid);
    const given = new Set(first?.object.metadata.finalizers);
    const kept = finalizers.filter((each) => !given.has(each) && each.includes('/'));
    const name = `${pluralOf(resource)} ${keyOf(object)}`;
    if (deletionTimestamp !== undefined && kept.length > 0) {
      return `${name} is deleted, and keeps its finalizer ${kept.join(', ')}`;
    }
    if (!isTeardown || isBackgroundResource(resource) || !first || !isByProcess(first)) continue;
    // The garbage collector keeps an object whose owner reference another client removed.
    if (controllerOf(first.object) && !controllerOf(object) && hasOrphan) continue;
    return `${name} is left after the deletion of the objects of the scenario`;
  }
  return undefined;
}
