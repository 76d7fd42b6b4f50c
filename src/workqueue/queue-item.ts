import type { DelayedKey } from './delayed-keys.ts';
import type { ReadyKey } from './ready-keys.ts';

/** A key from its first addition until it is done: the merged additions since it was last taken. */
export interface QueueItem<K> extends Causes, DelayedKey, ReadyKey<QueueItem<K>> {
  readonly key: K;
  priority: number;
  /** `delayed` until `readyAtMs`; then `ready`, or `held` while another item of the key is in flight. */
  state: 'delayed' | 'ready' | 'held' | 'inFlight';
  /** `Clock.monotonic()` of the first addition. */
  readonly sinceMs: number;
  /** `Clock.monotonic()` when a worker took the key; 0 before. */
  takenAtMs: number;
  /** Why the key is added when its delay is over. */
  dueCause: string | undefined;
  /** Additions while this item is in flight: the next item of the key, which is `delayed` or `held`. */
  again: QueueItem<K> | undefined;
}

/** Returns an item that is ready at once. */
export function newQueueItem<K>(
  key: K,
  tenant: string,
  priority: number,
  nowMs: number,
): QueueItem<K> {
  return {
    key,
    tenant,
    causes: NO_CAUSES,
    omittedCauses: 0,
    priority,
    state: 'delayed',
    sinceMs: nowMs,
    readyAtMs: nowMs,
    takenAtMs: 0,
    dueCause: undefined,
    again: undefined,
    arrival: 0,
    heapIndex: -1,
    previous: undefined,
    next: undefined,
  };
}

/** Why a key was added, for people. */
export interface Cause {
  /** `Pod default/web-0 deleted` */
  readonly text: string;
  /** Number of additions with this cause. */
  readonly times: number;
  /** Some of the fields that an update changed. Absent if they are not recorded. */
  readonly changes?: readonly FieldChange[];
}

/** A changed field, for people. Values are short texts in JSON; absent for a field that was absent. */
export interface FieldChange {
  /** `.spec.replicas` */
  readonly field: string;
  readonly before?: string;
  readonly after?: string;
}

/** Maximum number of different causes of one item; further ones are only counted. */
export const MAX_CAUSES = 10;

/** Merged causes of several additions. */
export interface Causes {
  /** In order of addition. An array, because there is mostly one. */
  causes: readonly { readonly text: string; times: number; changes?: readonly FieldChange[] }[];
  /** Number of additions whose cause is not in `causes`. */
  omittedCauses: number;
}

const NO_CAUSES: Causes['causes'] = Object.freeze([]);

/**
 * @param causes one cause, or those of a postponed sync
 * @param changes those of the one cause
 */
export function addCauses(
  to: Causes,
  causes: string | readonly Cause[],
  changes?: readonly FieldChange[],
): void {
  if (typeof causes === 'string') addCause(to, causes, 1, changes);
  else for (const { text, times, changes } of causes) addCause(to, text, times, changes);
}

function addCause(
  to: Causes,
  text: string,
  times: number,
  changes: readonly FieldChange[] | undefined,
): void {
  for (const known of to.causes) {
    if (known.text === text) {
      known.times += times;
      if (changes) known.changes = changes.map((change) => since(known.changes, change));
      return;
    }
  }
  const cause = changes ? { text, times, changes } : { text, times };
  // An array literal has the capacity that it needs; `push` would reserve 17 elements.
  if (to.causes.length < MAX_CAUSES) to.causes = [...to.causes, cause];
  else to.omittedCauses += times;
}

/** Returns a change with the value before an earlier change of the same field. */
function since(
  earlier: readonly FieldChange[] = [],
  { before, ...change }: FieldChange,
): FieldChange {
  const known = earlier.find(({ field }) => field === change.field);
  const first = known ? known.before : before;
  return first === undefined ? change : { ...change, before: first };
}

/** Returns `Pod default/web-0 deleted` or `Count default/web changed (3 times)`. */
export function formatCause({ text, times }: Cause): string {
  return times === 1 ? text : `${text} (${times} times)`;
}

/** Content of a work queue at one moment, for debug pages. */
export interface WorkQueueSnapshot<K> {
  readonly ready: readonly (WaitingKey<K> & { readonly queuedMs: number })[];
  /** The keys that are due first come first. */
  readonly delayed: readonly (WaitingKey<K> & { readonly dueInMs: number })[];
  readonly processing: readonly KeyInFlight<K>[];
  /** Numbers of all keys. */
  readonly readyCount: number;
  readonly delayedCount: number;
  /** Time for which the oldest ready key has waited, in milliseconds; 0 without one, or before the workers started. */
  readonly oldestReadyMs: number;
}

/** Options of `WorkQueue.snapshot`. */
export interface SnapshotOptions<K> {
  /**
   * Maximum length of `ready` and of `delayed`. Copying the causes of many keys is expensive.
   * @default unlimited
   */
  readonly limit?: number | undefined;
  /**
   * The only key in the snapshot.
   * @default all
   */
  readonly key?: K | undefined;
}

export interface WaitingKey<K> {
  readonly key: K;
  readonly tenant: string;
  readonly priority: number;
  readonly causes: readonly Cause[];
}

export interface KeyInFlight<K> {
  readonly key: K;
  readonly forMs: number;
  /** It was added while in flight, and is processed again. */
  readonly again: boolean;
}

/** Values of `Clock.monotonic()`. */
interface SnapshotTimes {
  readonly nowMs: number;
  readonly workersSinceMs: number;
}

/** @param items one for each key */
export function snapshotOf<K>(
  items: Iterable<QueueItem<K>>,
  inFlight: readonly QueueItem<K>[],
  { nowMs, workersSinceMs, limit = Infinity }: SnapshotTimes & SnapshotOptions<K>,
): WorkQueueSnapshot<K> {
  const ready: QueueItem<K>[] = [];
  const delayed: QueueItem<K>[] = [];
  let oldestReadyMs = 0;
  const queuedMsOf = ({ readyAtMs }: QueueItem<K>) =>
    Math.max(0, nowMs - Math.max(readyAtMs, workersSinceMs));
  for (const item of items) {
    const waiting = item.state === 'inFlight' ? item.again : item;
    if (waiting?.state === 'ready') {
      ready.push(waiting);
      oldestReadyMs = Math.max(oldestReadyMs, queuedMsOf(waiting));
    } else if (waiting?.state === 'delayed') delayed.push(waiting);
  }
  if (limit > 0) delayed.sort((a, b) => a.readyAtMs - b.readyAtMs);
  return {
    ready: ready.slice(0, limit).map((item) => waitingKey(item, { queuedMs: queuedMsOf(item) })),
    delayed: delayed
      .slice(0, limit)
      .map((item) => waitingKey(item, { dueInMs: item.readyAtMs - nowMs })),
    processing: inFlight.map(({ key, takenAtMs, again }) => ({
      key,
      forMs: nowMs - takenAtMs,
      again: again?.state === 'held',
    })),
    readyCount: ready.length,
    delayedCount: delayed.length,
    oldestReadyMs,
  };
}

function waitingKey<K, More>(item: QueueItem<K>, more: More): WaitingKey<K> & More {
  const { key, tenant, priority, dueCause } = item;
  const causes: Cause[] = item.causes.map((cause) => ({ ...cause }));
  if (dueCause !== undefined) causes.push({ text: dueCause, times: 1 });
  return { key, tenant, priority, causes, ...more };
}
