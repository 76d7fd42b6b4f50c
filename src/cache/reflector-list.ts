import type { KubernetesObject, ObjectList } from '../api/object.ts';
import { isOlderResourceVersion } from '../api/resource-version.ts';
import type { InformerMetrics } from '../metrics/reflector-metrics.ts';
import type { Clock } from '../util/clock.ts';
import type { Freshness } from './reflector-state.ts';
import { listResourceVersion, WATCH_SECONDS } from './reflector-state.ts';
import type { ListerWatcher, ListRequest, WatchRequest } from './lister-watcher.ts';
import type { ProgressClock } from './progress.ts';
import type { ReflectorLimits } from './reflector-options.ts';
import { WatchConnection } from './reflector-watch.ts';
import { ApiError, isApiError } from '../api/api-error.ts';

/** Objects on a page, unless told otherwise. */
const PAGE_SIZE = 500;

/** Dependencies of `BoundedSource`. */
export interface BoundedSourceDeps<T extends KubernetesObject> {
  readonly source: ListerWatcher<T>;
  readonly clock: Clock;
  readonly random: () => number;
  readonly metrics: InformerMetrics;
  readonly progress: ProgressClock;
  readonly limits: ReflectorLimits;
}

/** The two calls of a reflector. Neither waits for an answer for ever, nor is any watch silent so. */
export class ListPager<T extends KubernetesObject> {
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

/** A whole list, however many pages it came in. */
export interface CompleteList<T> {
  readonly items: readonly T[];
  /** Of the first page: the state that all pages show. */
  readonly resourceVersion: string;
  /** More than one page was offered: the server does not answer from its watch cache. */
  readonly paginated: boolean;
}

/**
 * Follows a list to its last page.
 *
 * A continue token lives for some minutes. When one has expired on the way, the pages so far cannot
 * be completed: one list without a limit, at the resourceVersion first asked for, replaces them. An
 * error on the first page is the caller's.
 */
export async function listAll<T extends KubernetesObject>(
  source: Pick<ListerWatcher<T>, 'list'>,
  request: Omit<ListRequest, 'continueToken'>,
): Promise<CompleteList<T>> {
  const { signal } = request;
  const first = await source.list(request);
  if (!first.continueToken) return { ...completed(first, first.items), paginated: false };
  const items = [...first.items];
  for (let token: string | undefined = first.continueToken; token;) {
    signal?.throwIfAborted();
    const page: ObjectList<T> | undefined = await nextPage(source, request, token);
    if (!page) {
      const whole = await source.list({ ...request, limit: undefined });
      return { ...completed(whole, whole.items), paginated: true };
    }
    for (const item of page.items) items.push(item);
    if (page.continueToken === token) {
      throw new ApiError({
        kind: 'malformed',
        message: 'The server answered a continued list with the continue token that was sent',
      });
    }
    token = page.continueToken;
  }
  return { ...completed(first, items), paginated: true };
}

/** The page behind `token`, or undefined if the token has expired. */
async function nextPage<T extends KubernetesObject>(
  source: Pick<ListerWatcher<T>, 'list'>,
  { limit, signal }: ListRequest,
  continueToken: string,
): Promise<ObjectList<T> | undefined> {
  try {
    // The token names the resourceVersion; the server refuses a request that names one beside it.
    return await source.list({ limit, continueToken, signal });
  } catch (error) {
    if (isApiError(error, 'expired')) return undefined;
    throw error;
  }
}

function completed<T extends KubernetesObject>(
  { resourceVersion }: ObjectList<T>,
  items: readonly T[],
): Omit<CompleteList<T>, 'paginated'> {
  return { items, resourceVersion };
}

/**
 * Calls with a signal that aborts with `signal`, or when `ms` have passed: an answer that does not
 * come is no answer. It is then up to the call to reject with the signal's reason, as calls of a
 * client do.
 */
export async function answerWithin<R>(
  clock: Clock,
  ms: number,
  signal: AbortSignal | undefined,
  call: (signal: AbortSignal) => Promise<R>,
): Promise<R> {
  const controller = new AbortController();
  const abort = () => controller.abort(signal?.reason);
  signal?.addEventListener('abort', abort, { once: true });
  if (signal?.aborted) abort();
  const cancel = clock.after(ms, () => {
    const message = `There was no answer within ${ms / 1000} s`;
    controller.abort(new ApiError({ kind: 'unreachable', message }));
  });
  try {
    return await call(controller.signal);
  } finally {
    cancel();
    signal?.removeEventListener('abort', abort);
  }
}
