import { isApiError, isExpired, isTooLargeResourceVersion } from '../../api/api-error.ts';

/** How a watch came to its end. */
export type WatchEnd =
  /** It never began. */
  | { readonly how: 'refused'; readonly error: unknown }
  /** The server closed it, as it does after `timeoutSeconds`. */
  | { readonly how: 'ended'; readonly lastedMs: number; readonly events: number }
  /** The connection broke, or said something that is not a watch event. */
  | { readonly how: 'cut'; readonly lastedMs: number; readonly error: unknown }
  /** The server reported an error in the stream. */
  | { readonly how: 'failed'; readonly error: unknown }
  /** No byte arrived for too long. */
  | { readonly how: 'stalled' };

/** What to do about it. */
export interface Reaction {
  /** Wait for one delay first. */
  readonly wait: boolean;
  /**
   * `watch`: go on from the last resourceVersion. `relist`: fetch the state, not older than that.
   * `relistLatest`: fetch it at any resourceVersion, since the server does not have that one.
   */
  readonly next: 'watch' | 'relist' | 'relistLatest';
  /** Set if people should hear of it. */
  readonly trouble?: unknown;
}

/** A watch that ends within this time, in milliseconds, and said nothing is broken, not over. */
const SHORTEST_MS = 1000;

/**
 * The reaction to the end of a watch. Going on from the last resourceVersion is always safe, since
 * a server that lost the history in between says so; a relist is for what a new watch cannot mend.
 */
export function reactionTo(end: WatchEnd): Reaction {
  switch (end.how) {
    case 'ended': {
      if (!isVeryShort(end)) return { wait: false, next: 'watch' };
      const trouble = new Error('The watch ended within a second, without an event');
      return { wait: true, next: 'relist', trouble };
    }
    case 'stalled':
      return { wait: false, next: 'watch' };
    case 'cut':
      if (!isApiError(end.error, 'unreachable')) {
        return { wait: true, next: 'relist', trouble: end.error };
      }
      return { wait: end.lastedMs < SHORTEST_MS, next: 'watch' };
    case 'failed':
      if (isExpired(end.error)) return { wait: true, next: 'relist' };
      if (isApiError(end.error, 'tooManyRequests')) return { wait: true, next: 'watch' };
      return { wait: true, next: 'relist', trouble: end.error };
    case 'refused':
      if (isExpired(end.error)) return { wait: true, next: 'relist' };
      if (isTooLargeResourceVersion(end.error)) return { wait: true, next: 'relistLatest' };
      return { wait: true, next: isPassing(end.error) ? 'watch' : 'relist', trouble: end.error };
  }
}

export function isVeryShort(end: { readonly lastedMs: number; readonly events: number }): boolean {
  return end.lastedMs < SHORTEST_MS && end.events === 0;
}

/** The server is absent or busy; what it knows is as it was. */
function isPassing(error: unknown): boolean {
  return (
    isApiError(error, 'unreachable', 'tooManyRequests', 'unavailable', 'timeout') ||
    (isApiError(error) && error.retryAfterMs !== undefined)
  );
}
