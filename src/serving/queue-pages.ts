import { printableText } from '../util/printable.ts';
import { formatPath } from '../api/field-path.ts';
import type { FieldPath } from '../api/field-path.ts';
import { objectKey } from '../api/object-key.ts';
import type { ObjectKey } from '../api/object-key.ts';
import { groupResourceOf } from '../api/resource.ts';
import type { Resource } from '../api/resource.ts';
import type { Clock } from '../util/clock.ts';
import type { Cause, WorkQueueSnapshot } from '../workqueue/queue-item.ts';
import type { WorkQueue } from '../workqueue/work-queue.ts';
import { jsonPages } from './routes.ts';
import type { Page, Pages } from './routes.ts';

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

/** Call of a sync: of the API server, or of a service by `callService`. */
export interface CallView {
  /** A method in capitals, for a service. */
  readonly verb: string;
  /** Empty for a service. */
  readonly resource: string;
  /** Key of the object, namespace, or path; or the origin of the URL of the service. */
  readonly at: string;
  /** HTTP status and kind of the error; absent if the API call succeeded. Services always have their status. */
  readonly code?: number;
  readonly error?: string;
  /** Milliseconds from the start of the sync until the call. */
  readonly afterMs: number;
  readonly ms: number;
}

/** Lease of the leader or of the shard of a key. */
export interface KeyOwner {
  /** `namespace/name` */
  readonly lease: string;
  /** Empty if the Lease has no holder. */
  readonly holder: string;
  readonly isThisProcess: boolean;
}

/** Dependencies of {@link queuePages}. */
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
   * Returns the Lease whose holder syncs a key, as this process last observed it.
   * @default this process syncs all keys
   */
  readonly owner?: ((key: ObjectKey) => KeyOwner | undefined) | undefined;
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
 *   total time, by slowest sync, by syncs per minute and by failures. `?limit=NUMBER` shows fewer than 100 waiting keys
 *   of each state; 0 avoids the cost of sorting and copying them.
 * - `/debug/keys`: all waiting, running and remembered keys with their last results, without causes.
 * - `/debug/why?key=NAMESPACE/NAME`: state of a key and its last syncs with causes, API calls and
 *   results; `&controller=NAME` selects a controller.
 */
export function queuePages(deps: QueuePagesDeps): Pages {
  const { controllers, redact } = deps;
  const json = jsonPages(redact);
  return new Map<string, (query: URLSearchParams) => Page>([
    ['/debug/queues', (query) => json(200, queuesReport(deps, limitOf(query)))],
    // Without the functions of other pages, which take most of the time for many keys. Names are shown as they are.
    [
      '/debug/keys',
      () => ({
        status: 200,
        contentType: 'application/json',
        body: `${printableText(JSON.stringify(keysReport(deps)))}\n`,
      }),
    ],
    [
      '/debug/why',
      (query) => {
        const key = query.get('key');
        if (!key) {
          const error = 'Parameter key is required: /debug/why?key=NAMESPACE/NAME';
          return json(400, { error });
        }
        const wanted = query.get('controller');
        const owner = deps.owner?.(key as ObjectKey);
        const known = controllers()
          .filter(({ name }) => wanted === null || name === wanted)
          .map((controller) => keyState(controller, key as ObjectKey, deps))
          .filter(({ state, history }) => state !== 'idle' || history !== undefined);
        if (known.length > 0) return json(200, whyReport(key, known, owner));
        return json(404, {
          error: `Key ${key} is not queued and not in the sync history${whereToAsk(owner)}`,
        });
      },
    ],
  ]);
}

/** Response of `/debug/queues`. */
export type QueuesReport = ReturnType<typeof queuesReport>;

function queuesReport(deps: QueuePagesDeps, limit: number) {
  const keys = deps.history.all();
  return {
    controllers: deps.controllers().map((controller) => queueOf(controller, deps, limit)),
    busiest: busiest(keys),
    slowest: slowest(keys, MAX_RANKED),
    hottest: hottest(keys, MAX_RANKED, deps.clock.now()),
    failing: failing(keys),
  };
}

function limitOf(query: URLSearchParams): number {
  const given = query.get('limit') ?? '';
  return /^\d+$/.test(given) ? Math.min(Number(given), MAX_KEYS) : MAX_KEYS;
}

function queueOf(
  { name, queue, hotLoops }: ControllerView,
  { history }: QueuePagesDeps,
  limit: number,
) {
  const { ready, delayed, processing, readyCount, delayedCount, oldestReadyMs } = queue.snapshot({
    limit,
  });
  return {
    controller: name,
    ready: { count: readyCount, keys: ready, oldestMs: oldestReadyMs },
    delayed: { count: delayedCount, keys: delayed },
    processing: {
      count: processing.length,
      keys: processing.slice(0, limit).map(({ key, forMs, again }) => {
        const sync = history.of(name, key)?.last.at(-1);
        return { key, forMs, again, causes: sync && !sync.end ? sync.causes : [] };
      }),
    },
    hotLoops: hotLoops.slice(0, MAX_KEYS).map(formatHotLoop),
  };
}

/** Response of `/debug/keys`. */
export type KeysReport = ReturnType<typeof keysReport>;

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
}

interface StateOfKey {
  readonly state: 'running' | 'ready' | 'delayed' | 'idle';
  /** Milliseconds for which it runs, is ready, or is delayed; absent if it is idle. */
  readonly stateMs?: number;
}

function keysReport({ controllers, history }: QueuePagesDeps) {
  const keys: ListedKey[] = [];
  let count = 0;
  const queues = new Map(
    controllers().map(({ name, queue }) => {
      const content = queue.snapshot({ limit: MAX_LISTED });
      const { ready, delayed, readyCount, delayedCount } = content;
      const states = statesOf(content);
      count += states.size + (readyCount - ready.length) + (delayedCount - delayed.length);
      return [name, { queue, states }];
    }),
  );
  for (const { controller, key, syncs, failures, busyMs, last } of history.all()) {
    const { queue, states } = queues.get(controller) ?? {};
    // A long queue has keys that its snapshot omits.
    const state = states?.get(key) ?? (queue && statesOf(queue.snapshot({ key })).get(key));
    const startedAt = last.at(-1)?.startedAt;
    const end = last.findLast((sync) => sync.end)?.end;
    states?.delete(key);
    if (!state) count++;
    keys.push({
      controller,
      key,
      state: 'idle',
      ...state,
      syncs,
      failures,
      busyMs: Math.round(busyMs),
      ...(startedAt !== undefined && { startedAt }),
      ...(end && { result: end.result, tookMs: Math.round(end.tookMs) }),
    });
  }
  for (const [controller, { states }] of queues) {
    for (const [key, state] of states) {
      keys.push({ controller, key, ...state, syncs: 0, failures: 0, busyMs: 0 });
    }
  }
  return { count, keys: keys.slice(0, MAX_LISTED) };
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

/** Response of `/debug/why`. */
export type WhyReport = ReturnType<typeof whyReport>;

function whyReport(
  key: string,
  controllers: readonly ReturnType<typeof keyState>[],
  owner: KeyOwner | undefined,
) {
  return { key, controllers, ...(owner && { owner }) };
}

function whereToAsk(owner: KeyOwner | undefined): string {
  if (!owner || owner.isThisProcess) return '';
  const { lease, holder } = owner;
  if (holder === '')
    return ` of this process. Its Lease ${lease} has no holder: no process syncs it now`;
  return ` of this process. Ask ${holder}, which holds its Lease ${lease}`;
}

function keyState(
  { name, queue, hotLoops, reconciled }: ControllerView,
  key: ObjectKey,
  { history }: QueuePagesDeps,
) {
  const { ready, delayed, processing } = queue.snapshot({ key });
  const [running] = processing;
  const [waiting] = ready;
  const [later] = delayed;
  const state = running ? 'running' : waiting ? 'ready' : later ? 'delayed' : 'idle';
  const hotLoop = hotLoops.find((loop) => loop.key === key);
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

/**
 * Ranks keys with a failure among their last syncs by failures since they were first remembered. Keys whose last
 * finished sync failed come first.
 */
function failing(keys: readonly KeyHistoryView[]) {
  return keys
    .flatMap(({ controller, key, syncs, failures, last }) => {
      const failed = last.findLast(({ end }) => end?.error !== undefined);
      if (!failed) return [];
      const hasRecovered = last.findLast(({ end }) => end) !== failed;
      const { startedAt, end } = failed;
      return [{ controller, key, syncs, failures, hasRecovered, startedAt, error: end?.error }];
    })
    .toSorted((a, b) => Number(a.hasRecovered) - Number(b.hasRecovered) || b.failures - a.failures)
    .slice(0, MAX_RANKED);
}

/** Ranks keys by their slowest remembered sync. */
export function slowest(keys: readonly KeyHistoryView[], limit: number) {
  return keys
    .flatMap(({ controller, key, last }) => {
      const finished = last.filter(({ end }) => end);
      if (finished.length === 0) return [];
      const sync = finished.reduce((a, b) => (took(b) > took(a) ? b : a));
      return [{ controller, key, sync }];
    })
    .toSorted((a, b) => took(b.sync) - took(a.sync))
    .slice(0, limit)
    .map(({ controller, key, sync: { startedAt, causes, end } }) => {
      return {
        controller,
        key,
        tookMs: end?.tookMs ?? 0,
        result: end?.result ?? '',
        startedAt,
        causes,
      };
    });
}

function took({ end }: SyncView): number {
  return end?.tookMs ?? 0;
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
