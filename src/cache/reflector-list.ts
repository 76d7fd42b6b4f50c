import { ApiError, isApiError } from '../api/api-error.ts';
import type { KubernetesObject, ObjectList } from '../api/object.ts';
import { isOlderResourceVersion } from '../api/resource-version.ts';
import { TimeoutError, withinTimeout } from '../util/within-timeout.ts';
import type { TimeLimit } from '../util/within-timeout.ts';
import type { Clock } from '../util/clock.ts';
import type { ListerWatcher, ListRequest } from './lister-watcher.ts';
import type { ReflectorLimits } from './reflector-options.ts';
import { listResourceVersion } from './reflector-state.ts';
import type { Freshness } from './reflector-state.ts';

/** Number of objects on a page, unless an option sets it. */
const PAGE_SIZE = 500;

/** All pages of a list. */
export interface CompleteList<T> {
  readonly items: readonly T[];
  /** Of the first page; all pages show the state at this version. */
  readonly resourceVersion: string;
  /** The server offered more than one page, so it did not answer from its watch cache. */
  readonly paginated: boolean;
}

/** Lists one resource in pages, each with a timeout. */
export class ListPager<T extends KubernetesObject> {
  readonly #source: Pick<ListerWatcher<T>, 'list'>;
  readonly #pageSize: number | undefined;
  /** A list from the watch cache was paged: the server has no watch cache for this resource. */
  #alwaysPaginate = false;

  constructor(
    source: ListerWatcher<T>,
    clock: Clock,
    { listTimeoutMs, pageSize }: Pick<ReflectorLimits, 'listTimeoutMs' | 'pageSize'>,
  ) {
    this.#pageSize = pageSize;
    this.#source = {
      list: (request) => listWithin({ clock, timeoutMs: listTimeoutMs }, source, request),
    };
  }

  /** Returns all objects; paged if the state comes from etcd. */
  async list(freshness: Freshness, signal: AbortSignal): Promise<CompleteList<T>> {
    const paginate = this.#alwaysPaginate || typeof freshness === 'string';
    const list = await listAll(this.#source, {
      resourceVersion: listResourceVersion(freshness),
      limit: this.#pageSize ?? (paginate ? PAGE_SIZE : undefined),
      signal,
    });
    if (freshness === 'any' && list.paginated && !this.#pageSize) this.#alwaysPaginate = true;
    return list;
  }

  /**
   * Whether the server has reached `resourceVersion`, which it has sent before. False means that it has
   * lost its history. Costs a quorum read of one object's metadata.
   */
  async hasReached(resourceVersion: string, signal: AbortSignal): Promise<boolean> {
    const list = await this.#source.list({ limit: 1, metadataOnly: true, signal });
    return !isOlderResourceVersion(list.resourceVersion, resourceVersion);
  }
}

/**
 * Follows a list to its last page.
 *
 * Continue tokens expire after some minutes. If one expires between two pages, the list starts again
 * without a limit, at the resourceVersion of the request. Rejects with the error of a first page.
 */
export async function listAll<T extends KubernetesObject>(
  source: Pick<ListerWatcher<T>, 'list'>,
  request: Omit<ListRequest, 'continueToken'>,
): Promise<CompleteList<T>> {
  const { signal } = request;
  const first = await source.list(request);
  const { resourceVersion } = first;
  if (!first.continueToken) return { items: first.items, resourceVersion, paginated: false };
  const items = [...first.items];
  for (let token: string | undefined = first.continueToken; token;) {
    signal?.throwIfAborted();
    const page: ObjectList<T> | undefined = await nextPage(source, request, token);
    if (!page) {
      const whole = await source.list({ ...request, limit: undefined });
      return { items: whole.items, resourceVersion: whole.resourceVersion, paginated: true };
    }
    for (const item of page.items) items.push(item);
    if (page.continueToken === token) {
      throw new ApiError({
        kind: 'malformed',
        message: 'The server returned the same continue token for two pages of a list',
      });
    }
    token = page.continueToken;
  }
  return { items, resourceVersion, paginated: true };
}

/** Returns the page of `continueToken`, or undefined if the token has expired. */
async function nextPage<T extends KubernetesObject>(
  source: Pick<ListerWatcher<T>, 'list'>,
  { limit, signal }: ListRequest,
  continueToken: string,
): Promise<ObjectList<T> | undefined> {
  try {
    // The token contains the resourceVersion; the server rejects a request with both.
    return await source.list({ limit, continueToken, signal });
  } catch (error) {
    if (isApiError(error, 'expired')) return undefined;
    throw error;
  }
}

/** Rejects with an `unreachable` error after the timeout. */
async function listWithin<T extends KubernetesObject>(
  limit: Pick<TimeLimit, 'clock' | 'timeoutMs'>,
  source: Pick<ListerWatcher<T>, 'list'>,
  request: ListRequest,
): Promise<ObjectList<T>> {
  try {
    return await withinTimeout({ ...limit, signal: request.signal }, (signal) =>
      source.list({ ...request, signal }),
    );
  } catch (error) {
    if (!(error instanceof TimeoutError)) throw error;
    const message = `There was no answer within ${limit.timeoutMs / 1000} s`;
    throw new ApiError({ kind: 'unreachable', message });
  }
}
