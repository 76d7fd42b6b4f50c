import type { KubernetesObject } from '../../api/object.ts';
import type { InformerMetrics } from '../../metrics/reflector-metrics.ts';
import type { Clock } from '../../util/clock.ts';
import { answerWithin } from './answer-within.ts';
import type { Freshness } from './freshness.ts';
import { listResourceVersion } from './freshness.ts';
import type { ListerWatcher, WatchRequest } from './lister-watcher.ts';
import type { CompleteList } from './pager.ts';
import { listAll } from './pager.ts';
import type { ProgressClock } from './progress.ts';
import type { ReflectorLimits } from './reflector-options.ts';
import { WatchConnection } from './watch-connection.ts';

/** Objects on a page, unless told otherwise. */
const PAGE_SIZE = 500;

/** After how long the server is asked to end a watch, in seconds. */
const WATCH_SECONDS = { min: 300, max: 600 };

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

  constructor(deps: BoundedSourceDeps<T>) {
    this.#deps = deps;
  }

  /** The whole state, page by page where the server must not be asked for it at once. */
  async list(freshness: Freshness, signal: AbortSignal): Promise<CompleteList<T>> {
    const { source, clock, limits } = this.#deps;
    const paginate = this.#alwaysPaginate || typeof freshness === 'string';
    const bounded: Pick<ListerWatcher<T>, 'list'> = {
      list: (request) =>
        answerWithin(clock, limits.listTimeoutMs, request.signal, (signal) =>
          source.list({ ...request, signal }),
        ),
    };
    const list = await listAll(bounded, {
      resourceVersion: listResourceVersion(freshness),
      limit: limits.pageSize ?? (paginate ? PAGE_SIZE : undefined),
      signal,
    });
    if (freshness === 'any' && list.paginated && !limits.pageSize) this.#alwaysPaginate = true;
    return list;
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
