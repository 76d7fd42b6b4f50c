import { keyOf } from '../api/object-key.ts';
import type { ObjectKey } from '../api/object-key.ts';
import type { WorkQueueSnapshot } from '../workqueue/queue-item.ts';
import { attentionOf, cachedObjectsOf } from './attention.ts';
import type { AttentionItem } from './attention.ts';
import { objectCondition } from './object-condition.ts';
import type { ObjectCondition } from './object-condition.ts';
import type { QueuePagesDeps } from './controller-view.ts';

/** Maximum number of keys in a list of all keys. */
const MAX_LISTED = 10_000;

/** Response of `/debug/keys`. */
export interface KeysReport {
  /** Number of all keys; the list may have fewer. */
  readonly count: number;
  readonly keys: readonly ListedKey[];
}

/** State of one key in a list of all keys. */
export interface ListedKey extends StateOfKey {
  readonly controller: string;
  readonly key: string;
  readonly syncs: number;
  readonly failures: number;
  readonly busyMs: number;
  /** Start of the last sync, RFC 3339; absent if none is remembered. */
  readonly startedAt?: string;
  /** Result of the last finished sync. */
  readonly result?: string;
  readonly tookMs?: number;
  /** Condition of the object; absent if it is not cached. */
  readonly condition?: ObjectCondition['state'];
  /** Absent if the key needs no attention. */
  readonly problem?: AttentionItem['problem'];
  readonly message?: string;
}

interface StateOfKey {
  readonly state: 'running' | 'ready' | 'delayed' | 'idle';
  /** Milliseconds for which it runs, is ready, or is delayed; absent if it is idle. */
  readonly stateMs?: number;
}

const NO_SYNCS = { state: 'idle', syncs: 0, failures: 0, busyMs: 0 } as const;

/** Returns all remembered and queued keys, and those of the cached objects. Those that need attention come first. */
export function keysReport(deps: QueuePagesDeps): KeysReport {
  const { redact = (text: string) => text } = deps;
  const controllers = deps.controllers();
  const histories = deps.history.all();
  const rows = new Map<string, ListedKey>();
  const add = (controller: string, key: string, more: Partial<ListedKey>) => {
    const id = `${controller} ${key}`;
    rows.set(id, { controller, key, ...NO_SYNCS, ...rows.get(id), ...more });
  };
  for (const { controller, key, problem, message } of attentionOf(controllers, histories).items) {
    add(controller, key, { problem, message: redact(message) });
  }
  for (const { controller, key, syncs, failures, busyMs, last } of histories) {
    const startedAt = last.at(-1)?.startedAt;
    const end = last.findLast((sync) => sync.end)?.end;
    add(controller, key, {
      syncs,
      failures,
      busyMs: Math.round(busyMs),
      ...(startedAt !== undefined && { startedAt }),
      ...(end && { result: end.result, tookMs: Math.round(end.tookMs) }),
    });
  }
  let omitted = 0;
  for (const controller of controllers) {
    const { name, queue } = controller;
    const content = queue.snapshot({ limit: MAX_LISTED });
    const { ready, delayed, readyCount, delayedCount } = content;
    for (const [key, state] of statesOf(content)) add(name, key, state);
    for (const object of cachedObjectsOf(controller)) {
      add(name, keyOf(object), { condition: objectCondition(object).state });
    }
    const rest = readyCount - ready.length + delayedCount - delayed.length;
    if (rest === 0) continue;
    omitted += rest;
    // A long queue has keys that its snapshot omits.
    for (const row of rows.values()) {
      if (row.controller !== name || row.state !== 'idle') continue;
      const key = row.key as ObjectKey;
      const state = statesOf(queue.snapshot({ key })).get(key);
      if (!state) continue;
      add(name, key, state);
      omitted--;
    }
  }
  return {
    count: rows.size + omitted,
    keys: Array.from(rows.values()).slice(0, MAX_LISTED),
  };
}

function statesOf({ ready, delayed, processing }: WorkQueueSnapshot<ObjectKey>) {
  const states = new Map<string, StateOfKey>();
  const add = (key: string, state: StateOfKey['state'], ms: number) =>
    states.set(key, { state, stateMs: Math.round(ms) });
  for (const { key, dueInMs } of delayed) add(key, 'delayed', dueInMs);
  for (const { key, queuedMs } of ready) add(key, 'ready', queuedMs);
  for (const { key, forMs } of processing) add(key, 'running', forMs);
  return states;
}
