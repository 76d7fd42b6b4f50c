import type { KubernetesObject, ObjectList } from '../../api/object.ts';
import { isOlderResourceVersion } from '../../api/resource-version.ts';
import type { InformerMetrics } from '../../metrics/reflector-metrics.ts';
import type { Clock } from '../../util/clock.ts';
import { answerWithin } from './answer-within.ts';
import type { Freshness } from './freshness.ts';
import { listResourceVersion } from './freshness.ts';
import type { ListerWatcher, ListRequest, WatchRequest } from './lister-watcher.ts';
import type { CompleteList } from './pager.ts';
import { listAll } from './pager.ts';
import type { ProgressClock } from './progress.ts';
import type { ReflectorLimits } from './reflector-options.ts';
import { WatchConnection } from './watch-connection.ts';
import { WATCH_SECONDS } from './watch-outcome.ts';

/** Objects on a page, unless told otherwise. */
const PAGE_SIZE = 500;

export interface BoundedSourceDeps<T extends KubernetesObject> {
  readonly source: ListerWatcher<T>;
  readonly clock: Clock;
  readonly random: () => number;
  readonly metrics: InformerMetrics;
  readonly progress: ProgressClock;
  readonly limits: ReflectorLimits;
}

/** The two calls of a reflector. Neither waits for an answer for ever, nor is any watch silent so. */
export class BoundedSource<T extends KubernetesObject> {
  readonly #deps: BoundedSourceDeps<T>;
  /** A list from the watch cache came in pages: the server has no watch cache for the resource. */
  #alwaysPaginate = false;
  readonly #bounded: Pick<ListerWatcher<T>, 'list'>;

  constructor(deps: BoundedSourceDeps<T>) {
    const { source, clock, limits } = deps;
    this.#deps = deps;
    this.#bounded = {
      list: (request: ListRequest): Promise<ObjectList<T>> =>
        answerWithin(clock, limits.listTimeoutMs, request.signal, (signal) =>
          source.list({ ...request, signal }),
        ),
    };
  }

  /** The whole state, page by page where the server must not be asked for it at once. */
  async list(freshness: Freshness, signal: AbortSignal): Promise<CompleteList<T>> {
    const { limits } = this.#deps;
    const paginate = this.#alwaysPaginate || typeof freshness === 'string';
    const list = await listAll(this.#bounded, {
      resourceVersion: listResourceVersion(freshness),
      limit: limits.pageSize ?? (paginate ? PAGE_SIZE : undefined),
      signal,
    });
    if (freshness === 'any' && list.paginated && !limits.pageSize) this.#alwaysPaginate = true;
    return list;
  }

  /**
   * False if the server has lost its history: by a quorum read it is at an older resourceVersion than
   * the one that it has sent. The read is of one object's metadata.
   */
  async hasReached(resourceVersion: string, signal: AbortSignal): Promise<boolean> {
    const list = await this.#bounded.list({ limit: 1, metadataOnly: true, signal });
    return !isOlderResourceVersion(list.resourceVersion, resourceVersion);
  }

  /** A watch whose signs of life move the progress clock from now on. */
  async watch(
    request: Omit<WatchRequest, 'signal'>,
    signal: AbortSignal,
  ): Promise<WatchConnection<T>> {
    const { source, clock, random, metrics, progress, limits } = this.#deps;
    const { min, max } = WATCH_SECONDS;
    metrics.watchStarted();
    const connection = await WatchConnection.open(
      source,
      {
        ...request,
        allowWatchBookmarks: true,
        timeoutSeconds: Math.floor(min + random() * (max - min)),
      },
      { ...limits, clock, signal },
    );
    progress.listenTo(connection);
    return connection;
  }
}
