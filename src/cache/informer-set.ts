import type { KubernetesObject } from '../api/object.ts';
import type { Resource } from '../api/resource.ts';
import type { Client, Selection } from '../client/client.ts';
import type { ReflectorMetrics } from '../metrics/reflector-metrics.ts';
import { systemClock } from '../util/clock.ts';
import type { Clock } from '../util/clock.ts';
import { Deferred } from '../util/deferred.ts';
import { silentLogger } from '../util/logger.ts';
import type { Logger } from '../util/logger.ts';
import type { Runnable } from '../util/runnable.ts';
import { Informer } from './informer.ts';
import { describeSelection, identifySelection, selectionsOf } from './list-options.ts';
import type {
  InformerRequest,
  MetadataRequest,
  PartialObjectMetadata,
  TweakListOptions,
} from './list-options.ts';
import { listerWatcher, withinShard } from './lister-watcher.ts';
import { MultiNamespaceInformer } from './multi-namespace-informer.ts';
import type { ReflectorOptions } from './reflector-options.ts';
import type { SharedInformer } from './shared-informer.ts';
import { FailureLog } from './failure-log.ts';
import { WatchListSupport } from './reflector-watch.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';
import { messageOf } from '../util/values.ts';
import type { Progress } from './progress.ts';

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
  tweakListOptions: true,
  freeze: true,
};

/** Options of `InformerSet`. */
export interface InformerSetOptions extends ReflectorOptions {
  /** @default systemClock */
  readonly clock?: Clock;
  /** @default silentLogger */
  readonly log?: Logger;
  /**
   * Numbers in [0, 1), for jitter.
   * @default Math.random
   */
  readonly random?: () => number;
  readonly metrics?: ReflectorMetrics;
  /**
   * What is known of the server's ability to stream initial state.
   * @default nothing yet
   */
  readonly watchList?: WatchListSupport;
  /**
   * Changes the selectors of every informer, before its own hook does.
   * @default none
   */
  readonly tweakListOptions?: TweakListOptions;
  /**
   * Freeze what is cached, so that whoever changes a shared object is thrown at. For tests.
   * @default false
   */
  readonly freeze?: boolean;
}

/**
 * One informer for each resource and selection, however many ask for it. `run` runs them all, also
 * those asked for later. One over several namespaces consists of the informers of each, which are
 * shared like any other.
 */
export class InformerSet implements Runnable {
  readonly name = 'informers';
  readonly #client: Pick<Client, 'list' | 'watch'>;
  readonly #waiting: CacheSyncLog;
  readonly #troubles: FailureLog;
  readonly #options: InformerSetOptions & { readonly watchList: WatchListSupport };
  readonly #informers = new Map<string, Informer>();
  readonly #transforms = new Map<string, unknown>();
  readonly #several = new Map<string, SharedInformer>();
  #life: 'new' | { start(informer: Informer): void } | 'stopped' = 'new';

  constructor(client: Pick<Client, 'list' | 'watch'>, options: InformerSetOptions = {}) {
    checkOptions(options, SET_OPTIONS, 'InformerSet');
    const { clock = systemClock, log = silentLogger } = options;
    this.#client = client;
    this.#waiting = new CacheSyncLog(clock, log);
    this.#troubles = new FailureLog(clock, log, true);
    this.#options = { ...options, watchList: options.watchList ?? new WatchListSupport(clock) };
  }

  /** The informers that run: one over several namespaces is there as its parts. */
  get informers(): readonly Informer[] {
    return [...this.#informers.values()];
  }

  /** True if every informer asked for so far has synced. */
  get hasSynced(): boolean {
    return this.informers.every((informer) => informer.hasSynced);
  }

  /** Resolves when every informer asked for so far has synced; rejects if one stops before. */
  get synced(): Promise<void> {
    return Promise.all(this.informers.map((informer) => informer.synced)).then(() => undefined);
  }

  /**
   * The informer of the objects of `resource` that `request` selects. The first to ask determines
   * the transform and the size of pages.
   *
   * @throws {SyntaxError} naming a selector that no server would accept
   * @throws {TypeError} if what the namespaces are is contradictory, or one of them has no name
   * @throws {RangeError} if there is no such shard
   * @throws {Error} if it is there already with another transform, or if the set has stopped
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
    const selections = selectionsOf(resource, request, this.#options.tweakListOptions);
    const parts = selections.map((selection) => this.#informer(resource, selection, request));
    const [first] = parts;
    if (first && parts.length === 1) return first;
    const id = selections
      .map((selection) => identifySelection(resource, selection, request))
      .sort()
      .join('; ');
    const present = this.#several.get(id);
    // The identity holds the resource, and with it the type.
    if (present) return present as SharedInformer<T>;
    const several = new MultiNamespaceInformer(
      resource,
      new Map(parts.map((part, at) => [selections[at]?.namespace ?? '', part])),
    );
    this.#several.set(id, several);
    return several;
  }

  #informer<T extends KubernetesObject>(
    resource: Resource<T>,
    selection: Selection,
    request: Details<T>,
  ): Informer<T> {
    const { metadataOnly = false, shard, transform, pageSize } = request;
    const id = identifySelection(resource, selection, request);
    const present = this.#informers.get(id);
    if (present) {
      if (transform !== this.#transforms.get(id)) {
        throw new Error(`The informer of ${id} is shared and has another transform`);
      }
      // The identity holds the resource, and with it the type.
      return present as Informer<T>;
    }
    if (this.#life === 'stopped') {
      throw new Error(`The informers have stopped; none is added for ${id}`);
    }
    const source = listerWatcher(this.#client, resource, selection, { metadataOnly });
    const part = shard ? withinShard(source, shard) : source;
    const { tweakListOptions: _, ...options } = this.#options;
    const informer = new Informer<T>(resource, part, {
      ...options,
      name: describeSelection(resource, selection, request),
      namespace: selection.namespace,
      troubles: this.#troubles,
      ...(transform ? { transform } : {}),
      ...(pageSize === undefined ? {} : { pageSize }),
    });
    this.#informers.set(id, informer);
    this.#transforms.set(id, transform);
    if (this.#life !== 'new') this.#life.start(informer);
    return informer;
  }

  async run(signal: AbortSignal): Promise<void> {
    if (this.#life !== 'new') throw new Error('The informers were run before');
    const stop = new AbortController();
    const stopped = new Deferred();
    const end = () => {
      stop.abort(signal.reason);
      stopped.resolve();
    };
    if (signal.aborted) end();
    signal.addEventListener('abort', end, { once: true });
    const tasks: Promise<void>[] = [];
    let fault: { readonly cause: unknown } | undefined;
    const start = async (task: Promise<void>) => {
      try {
        await task;
      } catch (cause) {
        fault ??= { cause };
        end();
      }
    };
    const running = {
      start: (informer: Informer) => {
        this.#waiting.add(informer);
        tasks.push(start(informer.run(stop.signal)));
      },
    };
    this.#life = running;
    for (const informer of this.informers) running.start(informer);
    await stopped.promise;
    this.#life = 'stopped';
    this.#waiting.stop();
    await Promise.all(tasks);
    signal.removeEventListener('abort', end);
    if (fault) throw fault.cause;
  }
}

/** What the two forms of a request have in common to whoever need not tell them apart. */
type Details<T extends KubernetesObject> = Omit<InformerRequest<T>, 'metadataOnly'> & {
  readonly metadataOnly?: boolean;
};

/** As much of an informer as it takes to say what it waits for. */
export interface Awaited {
  readonly name: string;
  readonly hasSynced: boolean;
  readonly progress: Pick<Progress, 'phase' | 'missing' | 'lastError' | 'lastErrorLoggedMs'>;
}

/** First pause between two rounds of lines, in milliseconds; it doubles. */
const FIRST_PAUSE_MS = 10_000;
const LONGEST_PAUSE_MS = 5 * 60_000;

/** So many caches are named in a line. */
const MOST_NAMES = 10;

interface Waiting {
  readonly cache: Awaited;
  readonly sinceMs: number;
}

/** Caches that wait for the same reason. */
interface Group {
  readonly names: string[];
  /** Since when the first of them waits. */
  readonly sinceMs: number;
  readonly why: { readonly lastError?: string; readonly phase?: string };
}

/**
 * Says now and then which caches are not there yet, for how long and why: in one line those that
 * wait for the same reason, as all do while a server is down.
 *
 * Reflectors tell of their failures too, when they begin and every few minutes. What one has said
 * lately is not said again: a round leaves out whoever told of its error since the middle of the
 * pause before, and resources that the server does not have.
 */
export class CacheSyncLog {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #waiting = new Set<Waiting>();
  #pauseMs = 0;
  #dueMs = Infinity;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock;
    this.#log = log;
  }

  /** `cache` is waited for from now on. */
  add(cache: Awaited): void {
    const sinceMs = this.#clock.monotonic();
    this.#waiting.add({ cache, sinceMs });
    if (this.#dueMs <= sinceMs + FIRST_PAUSE_MS) return;
    this.#arm(FIRST_PAUSE_MS);
  }

  stop(): void {
    this.#cancel?.();
    this.#dueMs = Infinity;
    this.#waiting.clear();
  }

  #arm(pauseMs: number): void {
    this.#cancel?.();
    this.#pauseMs = pauseMs;
    this.#dueMs = this.#clock.monotonic() + pauseMs;
    this.#cancel = this.#clock.after(pauseMs, this.#round);
  }

  readonly #round = (): void => {
    const latelyMs = this.#clock.monotonic() - this.#pauseMs / 2;
    const reasons = new Map<string, Group>();
    for (const waiting of this.#waiting) {
      const { name, hasSynced, progress } = waiting.cache;
      if (hasSynced) this.#waiting.delete(waiting);
      if (hasSynced || progress.missing) continue;
      const { lastError, lastErrorLoggedMs = -Infinity, phase } = progress;
      if (lastErrorLoggedMs > latelyMs) continue;
      const why = lastError === undefined ? { phase } : { lastError: messageOf(lastError) };
      const reason = why.lastError ?? phase;
      const group = reasons.get(reason) ?? { why, sinceMs: waiting.sinceMs, names: [] };
      reasons.set(reason, group);
      group.names.push(name);
    }
    for (const group of reasons.values()) this.#tell(group);
    if (this.#waiting.size > 0) this.#arm(Math.min(2 * this.#pauseMs, LONGEST_PAUSE_MS));
    else this.stop();
  };

  /** They are in the order in which they came: the first has waited for longest. */
  #tell({ names, sinceMs, why }: Group): void {
    const more = names.length - MOST_NAMES;
    this.#log.info('Waiting for caches', {
      caches: names.slice(0, MOST_NAMES).join(', '),
      ...(more > 0 ? { more } : {}),
      forSeconds: Math.round((this.#clock.monotonic() - sinceMs) / 1000),
      ...why,
    });
  }
}
