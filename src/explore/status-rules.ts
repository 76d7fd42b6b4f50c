import { controllerOf } from '../api/metadata.ts';
import type { KubernetesObject } from '../api/object.ts';
import { keyOf } from '../api/object-key.ts';
import { isRecord } from '../util/values.ts';
import { contentOf } from './final-state.ts';
import type { FinishedRun } from './finished-run.ts';
import type { ChangeRecord } from './history.ts';
import { copiesIn } from './other-client.ts';
import { isByProcess, pluralOf } from './rule.ts';
import { TWIN_NAMESPACE, TWIN_SUFFIX } from './upheaval.ts';

/** Conditions, phases and fields that say that an object is ready. */
const READY_CONDITIONS: ReadonlySet<unknown> = new Set(['Ready', 'Available']);
const READY_PHASES: ReadonlySet<unknown> = new Set(['Ready', 'Available', 'Running', 'Active']);
const READY_NUMBERS = ['readyReplicas', 'availableReplicas', 'ready', 'available'];

/** Kinds that are not ready without a status. */
const WORKLOADS: ReadonlySet<string> = new Set([
  '/pods',
  'apps/deployments',
  'apps/statefulsets',
  'apps/replicasets',
  'apps/daemonsets',
]);

/** A process reported that an object is ready before the objects that it owns have ever been ready. */
export function readyTooEarly({ changes }: FinishedRun): string | undefined {
  const owned = new Map<string, Map<string, ChangeRecord>>();
  const wereReady = new Set<string>();
  const unreadyOf = ({ object }: ChangeRecord) =>
    [...(owned.get(object.metadata.uid)?.values() ?? [])].filter(
      (each) =>
        isAwaited(each) &&
        !wereReady.has(each.object.metadata.uid) &&
        each.object.metadata.deletionTimestamp === undefined,
    );
  const last = new Map<string, ChangeRecord>();
  for (const change of changes) {
    const { object, previous, verb } = change;
    const { uid } = object.metadata;
    const ownerUid = controllerOf(object)?.uid;
    const siblings = ownerUid && (owned.get(ownerUid) ?? new Map<string, ChangeRecord>());
    if (ownerUid && siblings) owned.set(ownerUid, siblings);
    if (verb === 'delete') {
      last.delete(uid);
      if (siblings) siblings.delete(uid);
      continue;
    }
    if (siblings) siblings.set(uid, change);
    if (isReady(change)) wereReady.add(uid);
    last.set(uid, change);
    if (!isByProcess(change) || !claimsReady(object) || (previous && claimsReady(previous)))
      continue;
    const [unready] = unreadyOf(change);
    if (unready) return claim(change, unready);
  }
  for (const change of last.values()) {
    const { object } = change;
    const [unready] = claimsReady(object) ? unreadyOf(change) : [];
    if (unready && isByProcess(change)) return claim(change, unready);
  }
  return undefined;
}

function claim({ resource, object }: ChangeRecord, unready: ChangeRecord): string {
  return `${pluralOf(resource)} ${keyOf(object)} is reported as ready, and ${pluralOf(unready.resource)} ${keyOf(unready.object)} has never been ready`;
}

function isAwaited({ resource, object }: ChangeRecord): boolean {
  return WORKLOADS.has(resource) || conditionsOf(object).some(({ type }) => type === 'Ready');
}

function isReady({ resource, object }: ChangeRecord): boolean {
  const { spec, status } = object as KubernetesObject & {
    spec?: { replicas?: number };
    status?: Record<string, unknown>;
  };
  if (resource === '/pods' && status?.['phase'] === 'Succeeded') return true;
  if (resource === 'apps/daemonsets') {
    return status?.['numberReady'] === status?.['desiredNumberScheduled'];
  }
  if (resource !== '/pods' && WORKLOADS.has(resource)) {
    return Number(status?.['readyReplicas'] ?? 0) >= (spec?.replicas ?? 1);
  }
  return conditionsOf(object).some(({ type, status: is }) => type === 'Ready' && is === 'True');
}

function claimsReady(object: KubernetesObject): boolean {
  const status = statusOf(object);
  return (
    READY_PHASES.has(status['phase']) ||
    status['ready'] === true ||
    READY_NUMBERS.some((name) => typeof status[name] === 'number' && status[name] > 0) ||
    conditionsOf(object).some(({ type, status: is }) => READY_CONDITIONS.has(type) && is === 'True')
  );
}

function statusOf(object: KubernetesObject): Readonly<Record<string, unknown>> {
  const { status } = object as KubernetesObject & { status?: unknown };
  return isRecord(status) ? status : {};
}

function conditionsOf(object: KubernetesObject): { type?: unknown; status?: unknown }[] {
  const { conditions } = statusOf(object);
  return Array.isArray(conditions) ? conditions.filter(isRecord) : [];
}

/** At the end, the status is one of an earlier generation. */
export function outdatedStatus(run: FinishedRun, expected: FinishedRun): string | undefined {
  if (run !== expected || run.ending !== 'quiet') return undefined;
  for (const { object } of lastWrites(run).values()) {
    const { observedGeneration } = statusOf(object);
    const { generation } = object.metadata;
    if (observedGeneration === undefined || observedGeneration === generation) continue;
    return `${object.kind} ${keyOf(object)} has observedGeneration ${JSON.stringify(observedGeneration)} and generation ${generation}`;
  }
  return undefined;
}

/** Another client has an object with the name of an owned one, and the status of the owner does not show it. */
export function hidesCollision(run: FinishedRun, expected: FinishedRun): string | undefined {
  if (!run.deviations.some(({ fault }) => fault === 'occupy')) return undefined;
  const usual = lastWrites(expected);
  const actual = lastWrites(run);
  const copies = copiesIn(run.changes);
  for (const [name, { object }] of actual) {
    const owned = usual.get(name);
    const reference = owned && controllerOf(owned.object);
    if (!reference || controllerOf(object) || !copies.has(object.metadata.uid)) continue;
    for (const [ownerName, { object: before }] of usual) {
      const after = actual.get(ownerName)?.object;
      if (before.metadata.uid !== reference.uid || !after || !isPositive(before)) continue;
      if (contentOf(after) === contentOf(before)) {
        return `${ownerName} has the same status as if it owned ${name}, which belongs to another client`;
      }
    }
  }
  return undefined;
}

/** A second object owns less than the first, and its status does not show it. */
export function neglectsTwin(run: FinishedRun): string | undefined {
  if (!run.deviations.every(({ fault, at }) => fault === 'twin' && at.endsWith(': end'))) return;
  const last = [...lastWrites(run).values()];
  const ownedBy = ({ object: { metadata } }: ChangeRecord) =>
    last.filter(({ object }) => controllerOf(object)?.uid === metadata.uid).length;
  for (const twin of last) {
    const { name, namespace } = twin.object.metadata;
    const first = last.find(
      ({ resource, object: { metadata } }) =>
        resource === twin.resource &&
        metadata.namespace !== TWIN_NAMESPACE &&
        (`${metadata.name}${TWIN_SUFFIX}` === name ||
          (namespace === TWIN_NAMESPACE && metadata.name === name)),
    );
    if (!first || controllerOf(twin.object) || ownedBy(twin) >= ownedBy(first)) continue;
    const isSilent = JSON.stringify(statusOf(twin.object)) === '{}' || isPositive(twin.object);
    const isWithoutStatus = JSON.stringify(statusOf(first.object)) === '{}';
    if (isSilent && (isWithoutStatus || isPositive(first.object))) {
      return `${pluralOf(twin.resource)} ${keyOf(twin.object)} owns ${ownedBy(twin)} objects, and the status does not show why; ${keyOf(first.object)} owns ${ownedBy(first)}`;
    }
  }
  return undefined;
}

/** Whether the status says that something has been reached. */
function isPositive(object: KubernetesObject): boolean {
  const reached = Object.entries(statusOf(object)).some(
    ([name, value]) => typeof value === 'number' && value > 0 && name !== 'observedGeneration',
  );
  return reached || claimsReady(object);
}

/** Returns the last writes of the existing objects, by resource and name. */
function lastWrites({ changes }: FinishedRun): ReadonlyMap<string, ChangeRecord> {
  const last = new Map<string, ChangeRecord>();
  for (const change of changes) {
    const name = `${pluralOf(change.resource)} ${keyOf(change.object)}`;
    if (change.verb === 'delete') last.delete(name);
    else last.set(name, change);
  }
  return last;
}
