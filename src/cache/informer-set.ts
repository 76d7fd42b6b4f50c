import type { KubernetesObject } from '../api/object.ts';
import type { Resource } from '../api/resource.ts';
import type { Client } from '../client/client.ts';
import type { ReflectorMetrics } from '../metrics/reflector-metrics.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';
import { systemClock } from '../util/clock.ts';
import type { Clock } from '../util/clock.ts';
import { Deferred } from '../util/deferred.ts';
import { silentLogger } from '../util/logger.ts';
import type { Logger } from '../util/logger.ts';
import { subjectFields } from '../util/rate-limited-log.ts';
import type { Runnable } from '../util/runnable.ts';
import { messageOf } from '../util/values.ts';
import { FailureLog } from './failure-log.ts';
import { Informer } from './informer.ts';
import { describeSelection, identifySelection, selectionsOf } from './list-options.ts';
import type { TextSelection } from './list-options.ts';
import type {
  InformerRequest,
  MetadataRequest,
  PartialObjectMetadata,
  TweakListOptions,
} from './list-options.ts';
import { listerWatcher, withinShard } from './lister-watcher.ts';
import { MultiNamespaceInformer } from './multi-namespace-informer.ts';
import type { Progress } from './progress.ts';
import type { ReflectorOptions } from './reflector-options.ts';
import { WatchListSupport } from './reflector-watch.ts';
import { RelistSpread } from './relist-spread.ts';
import type { InformerView, SharedInformer } from './shared-informer.ts';

/** Options of {@link InformerSet}. */
export interface InformerSetOptions extends ReflectorOptions {
  /** @default systemClock */
  readonly clock?: Clock | undefined;
  /** @default silentLogger */
  readonly log?: Logger | undefined;
  /**
   * Returns numbers in [0, 1), for jitter.
   * @default Math.random
   */
  readonly random?: (() => number) | undefined;
  readonly metrics?: ReflectorMetrics | undefined;
  /**
   * Whether the server streams initial state; may be shared by several sets.
   * @default a new one
   */
  readonly watchList?: WatchListSupport | undefined;
  /**
   * Namespaces of requests with neither `namespace` nor `namespaces`; ignored for cluster-scoped resources. As
   * controller-runtime's `DefaultNamespaces`. A request for `namespaces: []` is one for all namespaces.
   * @default all namespaces
   */
  readonly namespaces?: readonly string[] | undefined;
  /**
   * Changes the selectors of every informer, before the function of its own request.
   * @default none
   */
  readonly tweakListOptions?: TweakListOptions | undefined;
  /**
   * Name of the cluster, before the names of informers in log lines and metrics.
   * @default the program's own cluster, without a name
   */
  readonly cluster?: string | undefined;
  /**
   * Freezes cached objects, so that code that modifies one throws. For tests.
   * @default false
   */
  readonly freeze?: boolean | undefined;
  /**
   * Called for each new informer before it runs.
   * @default none
   */
  readonly onInformer?: ((informer: Informer, selection: CacheSelection) => void) | undefined;
}

/** The objects of an informer. */
export interface CacheSelection extends TextSelection {
  readonly resource: Resource;
  readonly cluster?: string | undefined;
  readonly metadataOnly: boolean;
}

const SET_OPTIONS: OptionNames<InformerSetOptions> = {
  stallMs: true,
  quietMs: true,
  listTimeoutMs: true,
  streamPauseMs: true,
  streamTimeoutMs: true,
  pageSize: true,
  clock: true,
  log: true,
  random: true,
  metrics: true,
  watchList: true,
  namespaces: true,
  tweakListOptions: true,
  cluster: true,
  freeze: true,
  onInformer: true,
};

const REQUEST_OPTIONS: OptionNames<InformerRequest<KubernetesObject>> = {
  labelSelector: true,
  fieldSelector: true,
  namespace: true,
  namespaces: true,
  shard: true,
  tweakListOptions: true,
  pageSize: true,
  metadataOnly: true,
  transform: true,
};

/**
 * Informers that are shared by their users, one for each resource and selection. `run` runs all of them,
 * also those that are requested later. An informer of several namespaces consists of the shared informers
 * of each namespace.
 *
 * @example
 * ```ts
 * import { HttpClient, InformerSet, objectKey } from 'crd-controller';
 * import { NAMESPACES } from 'crd-controller/kinds';
 * import { ApiServer } from 'crd-controller/testing';
 *
 * const client = new HttpClient({ handler: new ApiServer().handler, server: 'https://test' });
 * const informers = new InformerSet(client);
 * const namespaces = informers.for(NAMESPACES);
 * const { synced } = namespaces.addHandler({});
 * const stop = new AbortController();
 * const running = informers.run(stop.signal);
 * await synced;
 * console.log(namespaces.lister.get(objectKey(undefined, 'default'))?.kind); // prints: Namespace
 * stop.abort();
 * await running;
 * ```
 */
export class InformerSet implements Runnable {
  readonly name = 'informers';
  readonly #client: Pick<Client, 'list' | 'watch' | 'reachability'>;
  readonly #clock: Clock;
  readonly #syncLog: CacheSyncLog;
  readonly #failureLog: FailureLog;
  readonly #relistSpread: RelistSpread;
  readonly #options: InformerSetOptions & { readonly watchList: WatchListSupport };
  readonly #informers = new Map<string, Informer>();
  readonly #transforms = new Map<string, unknown>();
  readonly #multiNamespace = new Map<string, SharedInformer>();
  /** `Clock.monotonic()` when an informer last found that the server has lost its history. */
  #historyLostMs = -Infinity;
  #state: 'new' | { start(informer: Informer): void } | 'stopped' = 'new';

  constructor(
    client: Pick<Client, 'list' | 'watch' | 'reachability'>,
    options: InformerSetOptions = {},
  ) {
    checkOptions(options, SET_OPTIONS, 'InformerSet');
    const { clock = systemClock, log = silentLogger } = options;
    this.#client = client;
    this.#clock = clock;
    this.#syncLog = new CacheSyncLog(clock, log);
    this.#failureLog = new FailureLog(clock, log, true);
    this.#relistSpread = new RelistSpread(clock);
    this.#options = { ...options, watchList: options.watchList ?? new WatchListSupport(clock) };
  }

  /** The informers of single namespaces or of all, without those that combine several namespaces. */
  get informers(): readonly Informer[] {
    return [...this.#informers.values()];
  }

  /** Whether every informer that was requested so far has synced. */
  get hasSynced(): boolean {
    return this.informers.every((informer) => informer.hasSynced);
  }

  /** Resolves when every informer that was requested so far has synced; rejects if one stops first. */
  get synced(): Promise<void> {
    return Promise.all(this.informers.map((informer) => informer.synced)).then(() => undefined);
  }

  /**
   * Returns the informer of the objects that `request` selects. The first request determines the
   * transform and the page size.
   *
   * @throws {SyntaxError} if a selector is malformed
   * @throws {TypeError} if both `namespace` and `namespaces` are set, or a namespace is empty
   * @throws {RangeError} if the shard is out of range
   * @throws {Error} if the informer exists with another transform, or if the set has stopped
   */
  for<T extends KubernetesObject>(
    resource: Resource<T>,
    request?: InformerRequest<T>,
  ): SharedInformer<T>;
  for(resource: Resource, request: MetadataRequest): SharedInformer<PartialObjectMetadata>;
  for<T extends KubernetesObject>(
    resource: Resource<T>,
    request: Details<T> = {},
  ): SharedInformer<T> {
    checkOptions(request, REQUEST_OPTIONS, 'InformerSet.for');
    const { namespaces, tweakListOptions } = this.#options;
    const isDefault = request.namespace === undefined && request.namespaces === undefined;
    const scope = isDefault ? { ...request, namespaces } : request;
    const selections = selectionsOf(resource, scope, tweakListOptions);
    const parts = selections.map((selection) => this.#informer(resource, selection, request));
    const [first] = parts;
    if (first && parts.length === 1) return first;
    const id = selections
      .map((selection) => identifySelection(resource, selection, request))
      .sort()
      .join('; ');
    const present = this.#multiNamespace.get(id);
    // The id contains the resource, which determines the type.
    if (present) return present as SharedInformer<T>;
    const informer = new MultiNamespaceInformer(
      resource,
      new Map(parts.map((part, at) => [selections[at]?.namespace ?? '', part])),
    );
    this.#multiNamespace.set(id, informer);
    return informer;
  }

  #informer<T extends KubernetesObject>(
    resource: Resource<T>,
    selection: TextSelection,
    request: Details<T>,
  ): Informer<T> {
    const { metadataOnly = false, shard, transform, pageSize } = request;
    const id = identifySelection(resource, selection, request);
    const present = this.#informers.get(id);
    if (present) {
      if (transform !== this.#transforms.get(id)) {
        throw new Error(`The informer of ${id} is shared and has another transform`);
      }
      // The id contains the resource, which determines the type.
      return present as Informer<T>;
    }
    if (this.#state === 'stopped') {
      throw new Error(`The informers have stopped; cannot add one for ${id}`);
    }
    const source = listerWatcher(this.#client, resource, selection, { metadataOnly });
    const part = shard ? withinShard(source, shard) : source;
    const { tweakListOptions: _, namespaces: __, onInformer, ...options } = this.#options;
    const informer = new Informer<T>(resource, part, {
      ...options,
      name: describeSelection(resource, selection, request),
      namespace: selection.namespace,
      failureLog: this.#failureLog,
      relistSpread: this.#relistSpread,
      onHistoryLost: (lastQuorumReadMs) => this.#relistOthers(informer, lastQuorumReadMs),
      transform,
      ...(pageSize !== undefined && { pageSize }),
    });
    this.#informers.set(id, informer);
    this.#transforms.set(id, transform);
    onInformer?.(informer, { ...selection, resource, cluster: options.cluster, metadataOnly });
    if (this.#state !== 'new') this.#state.start(informer);
    return informer;
  }

  /**
   * Lists all other resources again. A server loses the history of all resources at once. A cache that
   * has resumed its watch does not detect it if new writes have passed its resourceVersion.
   */
  #relistOthers(informer: Informer, lastQuorumReadMs: number): void {
    // Another informer has detected the same loss first.
    if (lastQuorumReadMs < this.#historyLostMs) return;
    this.#historyLostMs = this.#clock.monotonic();
    for (const other of this.informers) if (other !== informer) other.relist();
  }

  async run(signal: AbortSignal): Promise<void> {
    if (this.#state !== 'new') throw new Error('The informers can run only once');
    const stop = new AbortController();
    const stopped = new Deferred();
    const end = () => {
      stop.abort(signal.reason);
      stopped.resolve();
    };
    if (signal.aborted) end();
    signal.addEventListener('abort', end, { once: true });
    const tasks: Promise<void>[] = [];
    let failure: { readonly cause: unknown } | undefined;
    const start = async (task: Promise<void>) => {
      try {
        await task;
      } catch (cause) {
        failure ??= { cause };
        end();
      }
    };
    const running = {
      start: (informer: Informer) => {
        this.#syncLog.add(informer);
        tasks.push(start(informer.run(stop.signal)));
      },
    };
    this.#state = running;
    for (const informer of this.informers) running.start(informer);
    await stopped.promise;
    this.#state = 'stopped';
    this.#syncLog.stop();
    await Promise.all(tasks);
    signal.removeEventListener('abort', end);
    if (failure) throw failure.cause;
  }
}

/** Fields of both kinds of request. */
type Details<T extends KubernetesObject> = Omit<InformerRequest<T>, 'metadataOnly'> & {
  readonly metadataOnly?: boolean | undefined;
};

/** First interval between two rounds of lines, in milliseconds; it doubles. */
const FIRST_INTERVAL_MS = 10_000;
const MAX_INTERVAL_MS = 5 * 60_000;

/** Maximum number of caches in a line. */
const MAX_NAMES = 10;

/** The part of an informer that its line contains. */
export interface SyncingCache extends Pick<InformerView, 'name' | 'hasSynced'> {
  readonly progress: Pick<Progress, 'phase' | 'missing' | 'lastError' | 'lastErrorLoggedMs'>;
}

interface Waiting {
  readonly cache: SyncingCache;
  readonly sinceMs: number;
}

/** Caches that wait for the same reason. */
interface Group {
  readonly names: string[];
  /** Start of the longest wait. */
  readonly sinceMs: number;
  readonly why: { readonly lastError?: string; readonly phase?: string };
}

/**
 * Logs at increasing intervals which caches have not synced, for how long and why. Caches with the same
 * reason share a line, as all do while a server is down.
 *
 * Reflectors log their failures too. A round therefore omits caches whose failure was logged in the
 * second half of the interval, and resources that are not served.
 */
export class CacheSyncLog {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #waiting = new Set<Waiting>();
  #intervalMs = 0;
  #dueMs = Infinity;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock;
    this.#log = log;
  }

  /** Logs `cache` until it has synced. */
  add(cache: SyncingCache): void {
    const sinceMs = this.#clock.monotonic();
    this.#waiting.add({ cache, sinceMs });
    if (this.#dueMs <= sinceMs + FIRST_INTERVAL_MS) return;
    this.#arm(FIRST_INTERVAL_MS);
  }

  stop(): void {
    this.#cancel?.();
    this.#dueMs = Infinity;
    this.#waiting.clear();
  }

  #arm(intervalMs: number): void {
    this.#cancel?.();
    this.#intervalMs = intervalMs;
    this.#dueMs = this.#clock.monotonic() + intervalMs;
    this.#cancel = this.#clock.after(intervalMs, this.#round);
  }

  readonly #round = (): void => {
    const recentMs = this.#clock.monotonic() - this.#intervalMs / 2;
    const groups = new Map<string, Group>();
    for (const waiting of this.#waiting) {
      const { name, hasSynced, progress } = waiting.cache;
      if (hasSynced) this.#waiting.delete(waiting);
      if (hasSynced || progress.missing) continue;
      const { lastError, lastErrorLoggedMs = -Infinity, phase } = progress;
      if (lastErrorLoggedMs > recentMs) continue;
      const why = lastError === undefined ? { phase } : { lastError: messageOf(lastError) };
      const reason = why.lastError ?? phase;
      const group = groups.get(reason) ?? { why, sinceMs: waiting.sinceMs, names: [] };
      groups.set(reason, group);
      group.names.push(name);
    }
    for (const group of groups.values()) this.#logGroup(group);
    if (this.#waiting.size > 0) this.#arm(Math.min(2 * this.#intervalMs, MAX_INTERVAL_MS));
    else this.stop();
  };

  /** Names are in the order in which the caches were added, so the first one has waited longest. */
  #logGroup({ names, sinceMs, why }: Group): void {
    const subjects = names.slice(0, MAX_NAMES);
    const moreSubjects = Math.max(0, names.length - MAX_NAMES);
    this.#log.info('Waiting for caches to sync', {
      ...subjectFields('caches', 'caches', { subjects, moreSubjects }),
      forSeconds: Math.round((this.#clock.monotonic() - sinceMs) / 1000),
      ...why,
    });
  }
}
