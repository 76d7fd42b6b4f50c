/** That a key shall run, or run once more: what all additions since it was last handed out add up to. */
export interface QueueItem<K> extends Causes {
  readonly key: K;
  readonly tenant: string;
  priority: number;
  /** `delayed` until `readyAtMs`; then `ready`, or `held` for as long as the key is in flight. */
  state: 'delayed' | 'ready' | 'held';
  /** When the first addition came, on the monotonic clock. */
  readonly sinceMs: number;
  /** On the monotonic clock. */
  readyAtMs: number;
}

/** A wish for no time yet. */
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

/** Why a key is to run, for people. */
export interface Cause {
  /** `Pod default/web-0 deleted` */
  readonly text: string;
  /** How many additions gave it. */
  readonly times: number;
}

/** How many different causes of one run are told apart; later ones are only counted. */
export const MAX_CAUSES = 10;

/** What several additions of a key give as causes, equal ones once. */
export interface Causes {
  /** First ones first. They are few, most often one: a list is cheaper than a map. */
  readonly causes: { readonly text: string; times: number }[];
  /** Additions whose cause found no place in `causes`. */
  omittedCauses: number;
}

/** @param causes one, or those of a run that was put off */
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

/** `Pod default/web-0 deleted`, `Count default/web changed (3 times)` */
export function formatCause({ text, times }: Cause): string {
  return times === 1 ? text : `${text} (${times} times)`;
}

/** A work queue at one moment, for people. */
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
  /** It was added since it was handed out, and runs once more. */
  readonly again: boolean;
}

/** @param processing the keys in flight, and since when */
export function snapshotOf<K>(
  wishes: ReadonlyMap<K, QueueItem<K>>,
  processing: ReadonlyMap<K, number>,
  nowMs: number,
): WorkQueueSnapshot<K> {
  const ready = [];
  const delayed = [];
  for (const { key, tenant, priority, causes, state, readyAtMs } of wishes.values()) {
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
      again: wishes.get(key)?.state === 'held',
    })),
  };
}
