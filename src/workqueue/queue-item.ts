/** A key that waits to be processed: the merged additions since it was last taken. */
export interface QueueItem<K> extends Causes {
  readonly key: K;
  readonly tenant: string;
  priority: number;
  /** `delayed` until `readyAtMs`; then `ready`, or `held` while the key is in flight. */
  state: 'delayed' | 'ready' | 'held';
  /** `Clock.monotonic()` of the first addition. */
  readonly sinceMs: number;
  /** `Clock.monotonic()` when the item becomes ready. */
  readyAtMs: number;
}

/** Returns an item without a due time. */
export function newQueueItem<K>(
  key: K,
  tenant: string,
  priority: number,
  nowMs: number,
): QueueItem<K> {
  return {
    key,
    tenant,
    causes: [],
    omittedCauses: 0,
    priority,
    state: 'delayed',
    sinceMs: nowMs,
    readyAtMs: Infinity,
  };
}

/** Why a key was added, for people. */
export interface Cause {
  /** `Pod default/web-0 deleted` */
  readonly text: string;
  /** Number of additions with this cause. */
  readonly times: number;
}

/** Maximum number of different causes of one item; further ones are only counted. */
export const MAX_CAUSES = 10;

/** Merged causes of several additions. */
export interface Causes {
  /** In order of addition. An array, because there is mostly one. */
  readonly causes: { readonly text: string; times: number }[];
  /** Number of additions whose cause is not in `causes`. */
  omittedCauses: number;
}

/** @param causes one cause, or those of a postponed sync */
export function addCauses(to: Causes, causes: string | readonly Cause[]): void {
  if (typeof causes === 'string') addCause(to, causes, 1);
  else for (const { text, times } of causes) addCause(to, text, times);
}

function addCause(to: Causes, text: string, times: number): void {
  for (const known of to.causes) {
    if (known.text === text) {
      known.times += times;
      return;
    }
  }
  if (to.causes.length < MAX_CAUSES) to.causes.push({ text, times });
  else to.omittedCauses += times;
}

/** Returns `Pod default/web-0 deleted` or `Count default/web changed (3 times)`. */
export function formatCause({ text, times }: Cause): string {
  return times === 1 ? text : `${text} (${times} times)`;
}

/** Content of a work queue at one moment, for debug pages. */
export interface WorkQueueSnapshot<K> {
  readonly ready: readonly (WaitingKey<K> & { readonly queuedMs: number })[];
  readonly delayed: readonly (WaitingKey<K> & { readonly dueInMs: number })[];
  readonly processing: readonly KeyInFlight<K>[];
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

/** @param processing the keys in flight with their start times */
export function snapshotOf<K>(
  items: ReadonlyMap<K, QueueItem<K>>,
  processing: ReadonlyMap<K, number>,
  nowMs: number,
): WorkQueueSnapshot<K> {
  const ready = [];
  const delayed = [];
  for (const { key, tenant, priority, causes, state, readyAtMs } of items.values()) {
    const waiting = {
      key,
      tenant,
      priority,
      causes: causes.map(({ text, times }) => ({ text, times })),
    };
    if (state === 'ready') ready.push({ ...waiting, queuedMs: nowMs - readyAtMs });
    if (state === 'delayed') delayed.push({ ...waiting, dueInMs: readyAtMs - nowMs });
  }
  return {
    ready,
    delayed,
    processing: Array.from(processing, ([key, sinceMs]) => ({
      key,
      forMs: nowMs - sinceMs,
      again: items.get(key)?.state === 'held',
    })),
  };
}
