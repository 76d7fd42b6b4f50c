import { ApiError, isApiError } from '../../api/api-error.ts';
import type { KubernetesObject, ObjectList } from '../../api/object.ts';
import type { ListerWatcher, ListRequest } from './lister-watcher.ts';

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
