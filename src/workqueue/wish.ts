import type { Causes } from './cause.ts';

/** That a key shall run, or run once more: what all additions since it was last handed out add up to. */
export interface Wish<K> extends Causes {
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
export function newWish<K>(key: K, tenant: string, priority: number, nowMs: number): Wish<K> {
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
