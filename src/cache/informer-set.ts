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
import { listerWatcher } from './reflector/lister-watcher.ts';
import { MultiNamespaceInformer } from './multi-namespace-informer.ts';
import type { ReflectorOptions } from './reflector/reflector-options.ts';
import { withinShard } from './reflector/shard-source.ts';
import type { SharedInformer } from './shared-informer.ts';
import { TroubleLog } from './reflector/trouble-log.ts';
import { WaitingLines } from './reflector/waiting-lines.ts';
import { WatchListSupport } from './reflector/watch-list-support.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';

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
  readonly #waiting: WaitingLines;
  readonly #troubles: TroubleLog;
  readonly #options: InformerSetOptions & { readonly watchList: WatchListSupport };
  readonly #informers = new Map<string, Informer>();
  readonly #transforms = new Map<string, unknown>();
  readonly #several = new Map<string, SharedInformer>();
  #life: 'new' | { start(informer: Informer): void } | 'stopped' = 'new';

  constructor(client: Pick<Client, 'list' | 'watch'>, options: InformerSetOptions = {}) {
    checkOptions(options, SET_OPTIONS, 'InformerSet');
    const { clock = systemClock, log = silentLogger } = options;
    this.#client = client;
    this.#waiting = new WaitingLines(clock, log);
    this.#troubles = new TroubleLog(clock, log, true);
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
