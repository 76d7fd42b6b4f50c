import type { KubernetesObject } from '../api/object.ts';
import type { WatchConnection } from './reflector-watch.ts';
import { isApiError, isExpired, isTooLargeResourceVersion } from '../api/api-error.ts';

/** A state in which the reflector works. A connection exists only where it is read from. */
export type Working<T extends KubernetesObject> =
  /** Fetching the state through a watch (WatchList). */
  | { readonly phase: 'streaming'; readonly freshness: Freshness }
  /** Fetching the state page by page. */
  | { readonly phase: 'listing'; readonly freshness: Freshness }
  | Watching<T>;

export interface Watching<T extends KubernetesObject> {
  readonly phase: 'watching';
  /** Where to begin. */
  readonly resourceVersion: string;
  /** Whether the server has reached the resourceVersion is asked first. */
  readonly verify?: boolean;
  /** Open already, when the stream that brought the state goes on as the watch. */
  readonly connection?: WatchConnection<T>;
}

/** Pausing after a failure. */
export interface Waiting<T extends KubernetesObject> {
  readonly phase: 'waiting';
  readonly delayMs: number;
  readonly reason: string;
  readonly next: Working<T>;
}

/** What a reflector does next. */
export type ReflectorState<T extends KubernetesObject> = Working<T> | Waiting<T>;

/** After how long the server is asked to end a watch, in seconds. */
export const WATCH_SECONDS = { min: 300, max: 600 } as const;

/**
 * The longest absence of a server during which etcd cannot have been restored, in milliseconds: it
 * takes the start of etcd and of an API server.
 */
export const SHORT_ABSENCE_MS = 2000;

/** How a watch came to its end. */
export type WatchEnd =
  /** It never began. */
  | { readonly how: 'refused'; readonly error: unknown }
  /** It never began: the server has not reached its resourceVersion. */
  | { readonly how: 'behind' }
  /** It never began: the server is back after it was absent for longer than a restore takes. */
  | { readonly how: 'wasAbsent' }
  /** The server closed it, as it does after `timeoutSeconds`. */
  | { readonly how: 'ended'; readonly lastedMs: number; readonly events: number }
  /** The connection broke, or said something that is not a watch event. */
  | { readonly how: 'cut'; readonly lastedMs: number; readonly error: unknown }
  /** The server reported an error in the stream. */
  | { readonly how: 'failed'; readonly error: unknown }
  /** A bookmark had an older resourceVersion than the events before it. */
  | { readonly how: 'wentBack' }
  /** No byte arrived for too long. */
  | { readonly how: 'stalled' };

/** What to do about it. */
export interface Reaction {
  /** Wait for one delay first. */
  readonly wait: boolean;
  /**
   * `watch`: resume from the last resourceVersion. `verify`: the same, once the server has shown that
   * it has reached it. `relist`: fetch the state, not older than that. `relistLatest`: fetch it by a
   * quorum read, whatever its resourceVersion.
   */
  readonly next: 'watch' | 'verify' | 'relist' | 'relistLatest';
  /** Set if people should hear of it. */
  readonly trouble?: unknown;
}

/** A watch that ends within this time, in milliseconds, and said nothing is broken, not over. */
const SHORTEST_MS = 1000;

/** The shortest `timeoutSeconds` of a watch, in milliseconds. */
const SHORTEST_TIMEOUT_MS = WATCH_SECONDS.min * 1000;

/**
 * The reaction to the end of a watch.
 *
 * To resume from the last resourceVersion is safe only while the server keeps its history. A server
 * whose etcd was restored from a backup, or wiped, is behind that resourceVersion or has reached it
 * by other writes. It does not refuse the watch: kube-apiserver answers 200, sends neither events nor
 * bookmarks until it has passed the resourceVersion, and then only what is newer.
 *
 * So one small read comes before a watch is resumed, unless the last one sent events or bookmarks and
 * ran its time. It shows whether the server is behind. If the server was absent for `SHORT_ABSENCE_MS`
 * before it answered, it may have been restored meanwhile and have passed the resourceVersion since;
 * nothing but the whole state shows that, so the state is fetched again.
 */
export function reactionTo(end: WatchEnd): Reaction {
  switch (end.how) {
    case 'ended': {
      if (!isVeryShort(end)) {
        const ranItsTime = end.events > 0 && end.lastedMs >= SHORTEST_TIMEOUT_MS;
        return { wait: false, next: ranItsTime ? 'watch' : 'verify' };
      }
      const trouble = new Error('The watch ended within a second, without an event');
      return { wait: true, next: 'relist', trouble };
    }
    case 'stalled':
      return { wait: false, next: 'verify' };
    case 'wentBack':
      return { wait: true, next: 'verify' };
    case 'behind':
    case 'wasAbsent':
      return { wait: false, next: 'relistLatest' };
    case 'cut':
      if (!isApiError(end.error, 'unreachable')) {
        return { wait: true, next: 'relist', trouble: end.error };
      }
      return { wait: end.lastedMs < SHORTEST_MS, next: 'verify' };
    case 'failed':
      if (isExpired(end.error)) return { wait: true, next: 'relist' };
      if (isBusy(end.error)) return { wait: true, next: 'verify' };
      return { wait: true, next: 'relist', trouble: end.error };
    case 'refused':
      if (isExpired(end.error)) return { wait: true, next: 'relist' };
      if (isTooLargeResourceVersion(end.error)) return { wait: true, next: 'relistLatest' };
      return {
        wait: true,
        next: isPassing(end.error) ? 'verify' : 'relistLatest',
        trouble: end.error,
      };
  }
}

export function isVeryShort(end: { readonly lastedMs: number; readonly events: number }): boolean {
  return end.lastedMs < SHORTEST_MS && end.events === 0;
}

/** The server is absent or busy; its history may be as it was. */
function isPassing(error: unknown): boolean {
  return (
    isApiError(error, 'unreachable', 'tooManyRequests', 'unavailable', 'timeout') ||
    (isApiError(error) && error.retryAfterMs !== undefined)
  );
}

/** The server is there, and keeps its history. */
export function isBusy(error: unknown): boolean {
  return isApiError(error, 'tooManyRequests');
}

/**
 * How fresh a fetched state must be. `any`: whatever a cache of the server has, for the first one.
 * `latest`: by a quorum read, when the server does not have the resourceVersion we know. `atLeast`:
 * a relist, which must not go back in time.
 */
export type Freshness = 'any' | 'latest' | { readonly atLeast: string };

/** The freshness of a state that follows the one at `resourceVersion`. */
export function notOlderThan(resourceVersion: string): Freshness {
  return isPointInTime(resourceVersion) ? { atLeast: resourceVersion } : 'any';
}

/** False for what a server reads as "whichever". */
export function isPointInTime(resourceVersion: string): boolean {
  return resourceVersion !== '' && resourceVersion !== '0';
}

/** What a list asks for; absent means a quorum read. */
export function listResourceVersion(freshness: Freshness): string | undefined {
  return freshness === 'any' ? '0' : streamResourceVersion(freshness);
}

/** What a stream of the initial state asks for: its cheapest state is the latest. */
export function streamResourceVersion(freshness: Freshness): string | undefined {
  return typeof freshness === 'string' ? undefined : freshness.atLeast;
}

/** The server no longer, or not yet, has the resourceVersion asked for. */
export function isLostVersion(error: unknown): boolean {
  return isExpired(error) || isTooLargeResourceVersion(error);
}
