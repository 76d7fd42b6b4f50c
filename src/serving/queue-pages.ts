import { formatPath } from '../api/field-path.ts';
import type { FieldPath } from '../api/field-path.ts';
import { objectKey } from '../api/object-key.ts';
import type { ObjectKey } from '../api/object-key.ts';
import { groupResourceOf } from '../api/resource.ts';
import type { Resource } from '../api/resource.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';
import type { Clock } from '../util/clock.ts';
import type { Cause } from '../workqueue/queue-item.ts';
import type { WorkQueue } from '../workqueue/work-queue.ts';
import { jsonPages } from './routes.ts';
import type { Page, Pages } from './routes.ts';

const DEPS: OptionNames<QueuePagesDeps> = {
  controllers: true,
  history: true,
  clock: true,
  redact: true,
};

/** Controller as shown on its debug pages. */
export interface ControllerView {
  readonly name: string;
  readonly queue: Pick<WorkQueue<ObjectKey>, 'snapshot'>;
  readonly hotLoops: readonly HotLoopView[];
  /** Name of the informer of the reconciled kind, as on `/debug/object`. */
  readonly reconciled?: string | undefined;
}

/** Hot loop as shown on the debug pages. */
export interface HotLoopView {
  readonly key: ObjectKey;
  readonly kind: string;
  /** Object whose fields change: the object of the key, or another such as an owned object. */
  readonly resource: Resource;
  readonly namespace: string | undefined;
  readonly name: string;
  /** Some of the changing fields. */
  readonly paths: readonly FieldPath[];
  /** Number of changes at the time of detection, within `withinMs` milliseconds. */
  readonly times: number;
  readonly withinMs: number;
  /** Field manager of the key, if its writes specify one. */
  readonly fieldManager: string | undefined;
}

/** History of one key. */
export interface KeyHistoryView {
  readonly controller: string;
  readonly key: ObjectKey;
  /** Number of syncs since the key was first remembered. */
  readonly syncs: number;
  readonly failures: number;
  /** Total duration of the key's syncs, in milliseconds. */
  readonly busyMs: number;
  /** The last syncs, oldest first. The last one may be running. */
  readonly last: readonly SyncView[];
}

/** One sync in the history of a key. */
export interface SyncView {
  readonly reconcileID: string;
  /** RFC 3339. */
  readonly startedAt: string;
  readonly causes: readonly Cause[];
  readonly omittedCauses: number;
  readonly attempt: number;
  /** Milliseconds for which the key was delayed, and for which it waited for a worker. */
  readonly delayedMs: number;
  readonly queuedMs: number;
  readonly postponed: readonly {
    readonly reason: string;
    readonly times: number;
    readonly ms: number;
  }[];
  readonly calls: readonly CallView[];
  readonly omittedCalls: number;
  /** Absent while the sync is running. */
  readonly end?: {
    readonly tookMs: number;
    readonly result: string;
    readonly error?: string;
    readonly requeueAfterMs?: number | undefined;
    readonly reason?: string | undefined;
  };
}

/** API call of a sync. */
export interface CallView {
  readonly verb: string;
  readonly resource: string;
  /** Key of the object, namespace, or path. */
  readonly at: string;
  /** HTTP status and kind of the error; absent if the call succeeded. */
  readonly code?: number;
  readonly error?: string;
  /** Milliseconds from the start of the sync until the call. */
  readonly afterMs: number;
  readonly ms: number;
}

/** Dependencies of `queuePages`. */
export interface QueuePagesDeps {
  /** Returns the controllers. Called for each request, so controllers may be added later. */
  readonly controllers: () => readonly ControllerView[];
  /** Sync history that the controllers share. */
  readonly history: {
    all(): readonly KeyHistoryView[];
    of(controller: string, key: string): KeyHistoryView | undefined;
  };
  readonly clock: Pick<Clock, 'now'>;
  /**
   * Masks credentials in strings, because the pages show error messages.
   * @default nothing is masked
   */
  readonly redact?: ((text: string) => string) | undefined;
}

/** Maximum number of keys shown per state, and per ranking. */
const MAX_KEYS = 100;
const MAX_RANKED = 20;

/** Maximum number of keys in a list of all keys. */
const MAX_LISTED = 10_000;

/**
 * JSON pages that show why a key is synced, or why it is not. Each request costs time proportional to
 * the length of the queues. The pages contain object names and error messages, so restrict access.
 *
 * - `/debug/queues`: waiting keys with their causes, running syncs, hot loops, and rankings of keys by
 *   total time, by slowest sync, by syncs per minute and by failures.
 * - `/debug/keys`: all waiting, running and remembered keys with their last results, without causes.
 * - `/debug/why?key=NAMESPACE/NAME`: state of a key and its last syncs with causes, API calls and
 *   results; `&controller=NAME` selects a controller.
 */
export function queuePages(deps: QueuePagesDeps): Pages {
  checkOptions(deps, DEPS, 'queuePages');
  const { controllers, redact } = deps;
  const json = jsonPages(redact);
  return new Map<string, (query: URLSearchParams) => Page>([
    ['/debug/queues', () => json(200, queuesReport(deps))],
    ['/debug/keys', () => json(200, keysReport(deps))],
    [
      '/debug/why',
      (query) => {
        const key = query.get('key');
        if (!key) {
          const error = 'Parameter key is required: /debug/why?key=NAMESPACE/NAME';
          return json(400, { error });
        }
        const wanted = query.get('controller');
        const known = controllers()
          .filter(({ name }) => wanted === null || name === wanted)
          .map((controller) => keyState(controller, key, deps))
          .filter(({ state, history }) => state !== 'idle' || history !== undefined);
        if (known.length > 0) return json(200, whyReport(key, known));
        return json(404, {
          error: `Key ${key} is not queued and not in the sync history. If this process is a standby, ask the leader, which /debug/status names`,
        });
      },
    ],
  ]);
}

/** Response of `/debug/queues`. */
export type QueuesReport = ReturnType<typeof queuesReport>;

function queuesReport(deps: QueuePagesDeps) {
  const keys = deps.history.all();
  return {
    controllers: deps.controllers().map((controller) => queueOf(controller, deps)),
    busiest: busiest(keys),
    slowest: slowest(keys, MAX_RANKED),
    hottest: hottest(keys, MAX_RANKED, deps.clock.now()),
    failing: failing(keys),
  };
}

function queueOf({ name, queue, hotLoops }: ControllerView, { history }: QueuePagesDeps) {
  const { ready, delayed, processing } = queue.snapshot();
  return {
    controller: name,
    ready: {
      ...bounded(ready),
      oldestMs: ready.reduce((most, { queuedMs }) => Math.max(most, queuedMs), 0),
    },
    delayed: bounded(delayed.toSorted((a, b) => a.dueInMs - b.dueInMs)),
    processing: bounded(
      processing.map(({ key, forMs, again }) => {
        const sync = history.of(name, key)?.last.at(-1);
        return { key, forMs, again, causes: sync && !sync.end ? sync.causes : [] };
      }),
    ),
    hotLoops: hotLoops.slice(0, MAX_KEYS).map(formatHotLoop),
  };
}

function bounded<T>(all: readonly T[]): { readonly count: number; readonly keys: readonly T[] } {
  return { count: all.length, keys: all.slice(0, MAX_KEYS) };
}

/** Response of `/debug/keys`. */
export type KeysReport = ReturnType<typeof keysReport>;

/** State of one key in a list of all keys. */
export interface ListedKey {
  readonly controller: string;
  readonly key: string;
  readonly state: 'running' | 'ready' | 'delayed' | 'idle';
  /** Milliseconds for which it runs, is ready, or is delayed; absent if it is idle. */
  readonly stateMs?: number;
  readonly syncs: number;
  readonly failures: number;
  readonly busyMs: number;
  /** Start of the last sync, RFC 3339; absent if none is remembered. */
  readonly startedAt?: string;
  /** Result of the last finished sync. */
  readonly result?: string;
  readonly tookMs?: number;
}

function keysReport({ controllers, history }: QueuePagesDeps) {
  const keys = new Map<string, ListedKey>();
  const add = (controller: string, key: string, state: Partial<ListedKey>) => {
    const id = `${controller} ${key}`;
    const unknown = { controller, key, state: 'idle', syncs: 0, failures: 0, busyMs: 0 } as const;
    keys.set(id, { ...unknown, ...keys.get(id), ...state });
  };
  for (const { controller, key, syncs, failures, busyMs, last } of history.all()) {
    const startedAt = last.at(-1)?.startedAt;
    const end = last.findLast((sync) => sync.end)?.end;
    add(controller, key, {
      syncs,
      failures,
      busyMs,
      ...(startedAt !== undefined && { startedAt }),
      ...(end && { result: end.result, tookMs: end.tookMs }),
    });
  }
  for (const { name, queue } of controllers()) {
    const { ready, delayed, processing } = queue.snapshot();
    for (const { key, dueInMs } of delayed) add(name, key, { state: 'delayed', stateMs: dueInMs });
    for (const { key, queuedMs } of ready) add(name, key, { state: 'ready', stateMs: queuedMs });
    for (const { key, forMs } of processing) add(name, key, { state: 'running', stateMs: forMs });
  }
  return { count: keys.size, keys: [...keys.values()].slice(0, MAX_LISTED) };
}

/** Response of `/debug/why`. */
export type WhyReport = ReturnType<typeof whyReport>;

function whyReport(key: string, controllers: readonly ReturnType<typeof keyState>[]) {
  return { key, controllers };
}

function keyState(
  { name, queue, hotLoops, reconciled }: ControllerView,
  key: string,
  { history }: QueuePagesDeps,
) {
  const { ready, delayed, processing } = queue.snapshot();
  const isKey = (entry: { readonly key: string }) => entry.key === key;
  const running = processing.find(isKey);
  const waiting = ready.find(isKey);
  const later = delayed.find(isKey);
  const state = running ? 'running' : waiting ? 'ready' : later ? 'delayed' : 'idle';
  const hotLoop = hotLoops.find(isKey);
  return {
    controller: name,
    ...(reconciled !== undefined && { resource: reconciled }),
    state,
    ...running,
    ...waiting,
    ...later,
    ...(hotLoop && { hotLoop: formatHotLoop(hotLoop) }),
    history: history.of(name, key),
  };
}

function formatHotLoop(loop: HotLoopView) {
  const { key, kind, resource, namespace, name, paths, times, withinMs, fieldManager } = loop;
  return {
    key,
    kind,
    object: `${groupResourceOf(resource)} ${objectKey(namespace, name)}`,
    fields: paths.map(formatPath),
    times,
    withinMs,
    fieldManager,
  };
}

function busiest(keys: readonly KeyHistoryView[]) {
  return keys
    .toSorted((a, b) => b.busyMs - a.busyMs)
    .slice(0, MAX_RANKED)
    .map(({ last: _, ...totals }) => totals);
}

/** Ranks keys by failures since they were first remembered. */
function failing(keys: readonly KeyHistoryView[]) {
  return keys
    .filter(({ failures }) => failures > 0)
    .toSorted((a, b) => b.failures - a.failures)
    .slice(0, MAX_RANKED)
    .map(({ controller, key, syncs, failures, last }) => {
      const failed = last.findLast(({ end }) => end?.error !== undefined);
      return { controller, key, syncs, failures, error: failed?.end?.error };
    });
}

/** Ranks keys by their slowest remembered sync. */
export function slowest(keys: readonly KeyHistoryView[], limit: number) {
  return keys
    .flatMap(({ controller, key, last }) => {
      const [worst] = last
        .flatMap(({ startedAt, causes, end }) => (end ? [{ startedAt, causes, ...end }] : []))
        .toSorted((a, b) => b.tookMs - a.tookMs);
      if (!worst) return [];
      const { tookMs, result, startedAt, causes } = worst;
      return [{ controller, key, tookMs, result, startedAt, causes }];
    })
    .toSorted((a, b) => b.tookMs - a.tookMs)
    .slice(0, limit);
}

/**
 * Ranks keys by syncs per minute, from the first remembered sync until now. The rate of a key that is
 * no longer synced decreases with time.
 *
 * @param nowMs wall clock time
 */
export function hottest(keys: readonly KeyHistoryView[], limit: number, nowMs: number) {
  return keys
    .flatMap(({ controller, key, last }) => {
      const [first] = last;
      const latest = last.at(-1);
      if (!first || !latest || last.length < 2) return [];
      const sinceMs = Math.max(1, nowMs - Date.parse(first.startedAt));
      const syncsPerMinute = ((last.length - 1) * 60_000) / sinceMs;
      return [{ controller, key, syncsPerMinute, causes: latest.causes }];
    })
    .toSorted((a, b) => b.syncsPerMinute - a.syncsPerMinute)
    .slice(0, limit);
}
