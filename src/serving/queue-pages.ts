import { formatPath } from '../api/field-path.ts';
import { objectKey } from '../api/object-key.ts';
import type { ObjectKey } from '../api/object-key.ts';
import { groupResourceOf } from '../api/resource.ts';
import { attentionOf } from './attention.ts';
import type { Attention, AttentionItem } from './attention.ts';
import type {
  ControllerView,
  HotLoopView,
  KeyHistoryView,
  KeyOwner,
  QueuePagesDeps,
  SyncView,
} from './controller-view.ts';
import { keysReport } from './key-list.ts';
import { compactJsonPage, jsonPages } from './routes.ts';
import type { Page, Pages } from './routes.ts';

/** Maximum number of keys shown per state, and per ranking. */
const MAX_KEYS = 100;
const MAX_RANKED = 20;

/**
 * JSON pages that show why a key is synced, or why it is not. Each request costs time proportional to
 * the length of the queues. The pages contain object names and error messages, so restrict access.
 *
 * - `/debug/queues`: the keys that need attention, the number of objects by their condition, waiting keys with their causes,
 *   running syncs, hot loops, and rankings of keys by total time, by slowest sync and by syncs per minute. `?limit=NUMBER`
 *   shows fewer than 100 waiting keys of each state; 0 avoids the cost of sorting and copying them.
 * - `/debug/keys`: all waiting, running and remembered keys, and those of cached objects, with their last results and
 *   conditions, without causes.
 * - `/debug/why?key=NAMESPACE/NAME`: state of a key and its last syncs with causes, API calls and
 *   results; `&controller=NAME` selects a controller.
 */
export function queuePages(deps: QueuePagesDeps): Pages {
  const { controllers, redact } = deps;
  const json = jsonPages(redact);
  return new Map<string, (query: URLSearchParams) => Page>([
    ['/debug/queues', (query) => json(200, queuesReport(deps, limitOf(query)))],
    ['/debug/keys', () => compactJsonPage(200, keysReport(deps))],
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
  const controllers = deps.controllers();
  const { items, counts } = attentionOf(controllers, keys);
  return {
    attention: items.slice(0, MAX_KEYS),
    controllers: controllers.map((controller) =>
      queueOf(controller, deps, limit, { items, counts }),
    ),
    busiest: busiest(keys),
    slowest: slowest(keys, MAX_RANKED),
    hottest: hottest(keys, MAX_RANKED, deps.clock.now()),
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
  { items, counts }: Attention,
) {
  const isFailing = ({ controller, problem }: AttentionItem) =>
    controller === name && problem === 'failing';
  const { ready, delayed, processing, readyCount, delayedCount, oldestReadyMs } = queue.snapshot({
    limit,
  });
  return {
    controller: name,
    objects: counts.get(name),
    failing: items.filter(isFailing).length,
    ...history.totals(name),
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
    .map(({ controller, key, syncs, failures, busyMs }) => ({
      controller,
      key,
      syncs,
      failures,
      busyMs,
    }));
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
