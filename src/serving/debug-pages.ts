import { performance } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import type { Lease } from '../api/builtin.ts';
import { keyOf, objectKey } from '../api/object-key.ts';
import type { InformerView } from '../cache/shared-informer.ts';
import { failureReason } from '../client/transport/connection-error.ts';
import type { Clock } from '../util/clock.ts';
import { jsonPages } from './routes.ts';
import type { Pages } from './routes.ts';
import type { Verdict } from './verdict.ts';

/** Informer as shown on `/debug/status`. */
export type ShownInformer = Pick<InformerView, 'name' | 'hasSynced' | 'progress'> & {
  readonly lister: Pick<InformerView['lister'], 'size'>;
};

/** Dependencies of {@link statusPage}. */
export interface StatusPageDeps {
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  /**
   * Name of the program.
   * @default none
   */
  readonly name?: string | undefined;
  /** Version of the program. */
  readonly version: string;
  /** Returns the informers. Called for each request. */
  readonly informers: () => readonly ShownInformer[];
  /** @default the process runs without leader election */
  readonly election?:
    | {
        /** Holder identity of this process. */
        readonly identity: string;
        /** Returns the Leases. Called for each request. */
        readonly leases: () => readonly DebugLease[];
      }
    | undefined;
  /**
   * Returns what is wrong with the program. Called for each request.
   * @default it is not shown
   */
  readonly verdict?: (() => Verdict) | undefined;
  /** @default nothing is masked */
  readonly redact?: ((text: string) => string) | undefined;
}

/** Response of `/debug/status`. */
export interface ProcessStatus {
  /** Name of the program, if it has one. */
  readonly name?: string;
  readonly version: string;
  /** Current time, RFC 3339. */
  readonly now: string;
  /** Milliseconds since the process started. */
  readonly upMs: number;
  readonly verdict?: Verdict;
  /** Absent without leader election. */
  readonly election?: { readonly identity: string; readonly leases: readonly DebugLease[] };
  readonly informers: readonly InformerStatus[];
  readonly process: ProcessUsage;
}

/** Memory and time that the process uses. Times are totals since the start, in milliseconds. */
export interface ProcessUsage {
  readonly residentBytes: number;
  readonly heapBytes: number;
  /** Heap size at which the process ends. */
  readonly heapLimitBytes: number;
  readonly cpuMs: number;
  /** Time in which the event loop ran code, and time in which it waited. */
  readonly loopActiveMs: number;
  readonly loopIdleMs: number;
}

/** The status of an informer on `/debug/status`. */
export interface InformerStatus {
  readonly name: string;
  /** `missing`: the server does not serve the resource. `stale`: no activity on the connection within a bound. */
  readonly state: 'missing' | 'stale' | InformerView['progress']['phase'];
  readonly stateForMs: number;
  readonly hasSynced: boolean;
  /** Milliseconds since the last activity on the connection. */
  readonly inactiveMs: number;
  readonly objects: number;
  /** Why the last call failed, such as `connection refused`. Absent after a success. */
  readonly error?: string;
}

/** Page `/debug/status`: state of the process, of leader election and of the informers. */
export function statusPage(deps: StatusPageDeps): Pages {
  const { clock, redact } = deps;
  const json = jsonPages(redact);
  const startedMs = clock.monotonic();
  return new Map([['/debug/status', () => json(200, processStatus(deps, startedMs))]]);
}

function processStatus(
  { clock, name, version, informers, election, verdict }: StatusPageDeps,
  startedMs: number,
): ProcessStatus {
  const nowMs = clock.monotonic();
  return {
    ...(name !== undefined && { name }),
    version,
    now: new Date(clock.now()).toISOString(),
    upMs: nowMs - startedMs,
    ...(verdict && { verdict: verdict() }),
    ...(election && { election: { identity: election.identity, leases: election.leases() } }),
    informers: informers().map((informer) => informerStatus(informer, nowMs)),
    process: processUsage(),
  };
}

/** Returns the memory and time that the process uses now. */
export function processUsage(): ProcessUsage {
  const { user, system } = process.cpuUsage();
  const { used_heap_size: heapBytes, heap_size_limit: heapLimitBytes } = getHeapStatistics();
  const { active, idle } = performance.eventLoopUtilization();
  return {
    residentBytes: process.memoryUsage.rss(),
    heapBytes,
    heapLimitBytes,
    cpuMs: (user + system) / 1000,
    loopActiveMs: active,
    loopIdleMs: idle,
  };
}

function informerStatus(
  { name, hasSynced, progress, lister }: ShownInformer,
  nowMs: number,
): InformerStatus {
  const { phase, sinceMs, missing, lastError, lastErrorMs } = progress;
  return {
    name,
    state: missing ? 'missing' : progress.isStale ? 'stale' : phase,
    stateForMs: nowMs - sinceMs,
    hasSynced,
    inactiveMs: progress.inactiveMs,
    objects: lister.size,
    ...(lastErrorMs !== undefined && { error: failureReason(lastError) }),
  };
}

/** Lease as this process last observed it. */
export interface DebugLease {
  /** `namespace/name` */
  readonly lease: string;
  /** Empty if the Lease has no holder. */
  readonly holder: string;
  /** Time of acquisition by the holder's clock, RFC 3339. */
  readonly acquireTime: string | undefined;
  /** Milliseconds since the observation. */
  readonly seenMsAgo: number;
}

/** Remembers the last observed state of the Leases of an election, for `/debug/status`. */
export class ObservedLeases {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #observed = new Map<string, { readonly lease: Lease; readonly atMs: number }>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Records the state of a Lease after a read, a write or an event. */
  readonly observe = (lease: Lease): void => {
    const { namespace, name } = lease.metadata;
    this.#observed.set(objectKey(namespace, name), { lease, atMs: this.#clock.monotonic() });
  };

  /** The Leases, sorted by name. */
  get all(): DebugLease[] {
    const nowMs = this.#clock.monotonic();
    return [...this.#observed]
      .toSorted(([a], [b]) => a.localeCompare(b, 'en', { numeric: true }))
      .map(([key, { lease, atMs }]) => ({
        lease: key,
        holder: lease.spec?.holderIdentity ?? '',
        acquireTime: lease.spec?.acquireTime,
        seenMsAgo: nowMs - atMs,
      }));
  }
}

/** Cached resource as shown on `/debug/cache`. */
export type CachedResource = Pick<InformerView, 'name'> & {
  readonly lister: Pick<InformerView['lister'], 'size' | 'list'>;
};

/** Maximum number of objects in one response. */
const MAX_OBJECTS = 1000;

/**
 * Page `/debug/cache`: names and resourceVersions of cached objects, never their content.
 *
 * - `/debug/cache`: the cached resources.
 * - `/debug/cache?resource=NAME`: the objects of one resource; `&namespace=NAME` selects a namespace.
 *
 * @param informers called for each request
 */
export function cachePage(informers: () => readonly CachedResource[]): Pages {
  const json = jsonPages();
  return new Map([
    [
      '/debug/cache',
      (query: URLSearchParams) => {
        const all = informers();
        const resource = query.get('resource');
        if (resource === null) {
          return json(200, {
            resources: all.map(({ name, lister }) => ({ resource: name, objects: lister.size })),
          });
        }
        const cached = all.find(({ name }) => name === resource);
        return cached
          ? json(200, cacheContent(cached, query.get('namespace') ?? undefined))
          : json(404, { error: `Resource ${resource} is not cached; see /debug/cache for a list` });
      },
    ],
  ]);
}

function cacheContent({ name, lister }: CachedResource, namespace: string | undefined) {
  const objects = lister.list(namespace === undefined ? {} : { namespace });
  const keys = objects
    .map((object) => ({ key: keyOf(object), resourceVersion: object.metadata.resourceVersion }))
    .toSorted((one, other) => (one.key < other.key ? -1 : 1));
  return { resource: name, objects: objects.length, keys: keys.slice(0, MAX_OBJECTS) };
}

/**
 * Page `/debug/report`: Node.js's diagnostic report with stacks, heap, handles, limits and libraries.
 * Omits the environment, which contains secrets, and the host names of peers, because resolving them
 * blocks the process.
 *
 * @param redact masks credentials in strings, because the report shows flags
 */
export function reportPage(
  redact: (text: string) => string,
  report: Pick<NodeJS.ProcessReport, 'getReport'> = process.report,
): Pages {
  const json = jsonPages(redact);
  return new Map([
    [
      '/debug/report',
      () => {
        // Node.js has this property; its types do not.
        Object.assign(report, { excludeNetwork: true });
        return json(200, withoutEnvironment(report.getReport()));
      },
    ],
  ]);
}

/** Removes the environment from a report and from the reports of its worker threads. */
function withoutEnvironment(report: object): object {
  const { environmentVariables: _, workers, ...shown } = report as Record<string, unknown>;
  if (!Array.isArray(workers)) return shown;
  return { ...shown, workers: workers.map(withoutEnvironment) };
}
