import type { Cause } from './cause.ts';
import type { Wish } from './wish.ts';

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
  wishes: ReadonlyMap<K, Wish<K>>,
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
