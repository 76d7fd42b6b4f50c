import { isApiError, isExpired, isTooLargeResourceVersion } from '../api/api-error.ts';
import type { KubernetesObject } from '../api/object.ts';
import { isPointInTime } from '../api/resource-version.ts';
import type { WatchConnection, WatchEnd } from './reflector-watch.ts';

/**
 * Required freshness of a list.
 *
 * - `any`: the state of the server's watch cache; for the first list.
 * - `latest`: a quorum read; if the server does not have the last resourceVersion.
 * - `atLeast`: not older than this resourceVersion; for a relist, which must not go back in time.
 */
export type Freshness = 'any' | 'latest' | { readonly atLeast: string };

/** State that starts with a request. It can follow a delay. */
export type RequestState =
  /** Gets the initial state through a watch (WatchList). */
  | { readonly phase: 'streaming'; readonly freshness: Freshness }
  /** Gets the initial state by a paged list. */
  | { readonly phase: 'listing'; readonly freshness: Freshness }
  | Verifying
  /** Opens a watch from `resourceVersion`. */
  | { readonly phase: 'opening'; readonly resourceVersion: string };

/** Checks that the server has reached `resourceVersion`, before a watch is opened from there. */
export interface Verifying {
  readonly phase: 'verifying';
  readonly resourceVersion: string;
  /** `Clock.monotonic()` of the first failure of an absent server; undefined if it was only busy. */
  readonly absentSinceMs: number | undefined;
}

/** Reads an open watch to its end. */
export interface Watching<T extends KubernetesObject> {
  readonly phase: 'watching';
  /** Start of the watch. */
  readonly resourceVersion: string;
  readonly connection: WatchConnection<T>;
}

/** Delay after a failure. */
export interface Waiting {
  readonly phase: 'waiting';
  readonly delayMs: number;
  /**
   * Shortest delay, if the server answers another request meanwhile.
   * @default the delay does not depend on other requests
   */
  readonly earliestMs?: number;
  readonly reason: string;
  readonly next: RequestState;
}

export type ReflectorState<T extends KubernetesObject> = RequestState | Watching<T> | Waiting;

/** Range of the `timeoutSeconds` of a watch, after which the server ends it. */
export const WATCH_SECONDS = { min: 300, max: 600 } as const;

/** Next step after the end of a watch. */
export interface Reaction {
  /** Wait for one backoff delay first. */
  readonly wait: boolean;
  /**
   * - `watch`: resume from the last resourceVersion.
   * - `verify`: the same, after the server has shown that it has reached that resourceVersion.
   * - `relist`: list, not older than the last resourceVersion.
   * - `relistLatest`: list by a quorum read, at any resourceVersion.
   */
  readonly next: 'watch' | 'verify' | 'relist' | 'relistLatest';
  /** Failure to log. */
  readonly failure?: unknown;
}

/** A watch without events that ends within this time, in milliseconds, has failed. */
const SHORTEST_MS = 1000;

/** Shortest `timeoutSeconds` of a watch, in milliseconds. */
const SHORTEST_TIMEOUT_MS = WATCH_SECONDS.min * 1000;

/**
 * Returns the reaction to the end of a watch.
 *
 * To resume from the last resourceVersion is safe only while the server keeps its history. A server
 * whose etcd was restored from a backup, or wiped, is behind that resourceVersion or has reached it
 * by other writes. It does not reject the watch: kube-apiserver answers 200, sends neither events nor
 * bookmarks until it has passed the resourceVersion, and then only newer events.
 *
 * Therefore one small read precedes a resumed watch, unless the last one sent events or bookmarks and
 * ran until its timeout. It shows whether the server is behind. If the server was absent for
 * `SHORT_ABSENCE_MS` before it answered, it may have been restored and have passed the resourceVersion
 * since. Only a full list shows that, so the reflector relists. It also does so if other requests noticed the absence
 * while the watch was open: its connection can break later.
 */
export function reactionTo(end: WatchEnd): Reaction {
  switch (end.how) {
    case 'serverEnded': {
      if (!isVeryShort(end)) {
        const ranToTimeout = end.events > 0 && end.lastedMs >= SHORTEST_TIMEOUT_MS;
        return { wait: false, next: ranToTimeout ? 'watch' : 'verify' };
      }
      const failure = new Error('The watch ended within a second, without an event');
      return { wait: true, next: 'relist', failure };
    }
    case 'stalled':
      return { wait: false, next: 'verify' };
    case 'bookmarkWentBack':
      return { wait: true, next: 'verify' };
    case 'serverBehind':
    case 'serverWasAbsent':
      return { wait: false, next: 'relistLatest' };
    case 'connectionBroke':
      if (!isApiError(end.error, 'unreachable')) {
        return { wait: true, next: 'relist', failure: end.error };
      }
      return { wait: end.lastedMs < SHORTEST_MS, next: 'verify' };
    case 'errorEvent':
      if (isExpired(end.error)) return { wait: true, next: 'relist' };
      if (isBusy(end.error)) return { wait: true, next: 'verify' };
      return { wait: true, next: 'relist', failure: end.error };
    case 'watchRejected':
      if (isExpired(end.error)) return { wait: true, next: 'relist' };
      if (isTooLargeResourceVersion(end.error)) return { wait: true, next: 'relistLatest' };
      return {
        wait: true,
        next: isTransient(end.error) ? 'verify' : 'relistLatest',
        failure: end.error,
      };
  }
}

export function isVeryShort(end: { readonly lastedMs: number; readonly events: number }): boolean {
  return end.lastedMs < SHORTEST_MS && end.events === 0;
}

/** The server is absent or busy; its history may be unchanged. */
function isTransient(error: unknown): boolean {
  return (
    isApiError(error, 'unreachable', 'tooManyRequests', 'unavailable', 'timeout') ||
    (isApiError(error) && error.retryAfterMs !== undefined)
  );
}

/** The server is running and keeps its history. */
export function isBusy(error: unknown): boolean {
  return isApiError(error, 'tooManyRequests');
}

/** Returns the freshness of a list that follows a state at `resourceVersion`. */
export function notOlderThan(resourceVersion: string): Freshness {
  return isPointInTime(resourceVersion) ? { atLeast: resourceVersion } : 'any';
}

/** Returns the `resourceVersion` parameter of a list; undefined means a quorum read. */
export function listResourceVersion(freshness: Freshness): string | undefined {
  return freshness === 'any' ? '0' : streamResourceVersion(freshness);
}

/** Returns the `resourceVersion` parameter of a streaming list, whose cheapest state is the latest. */
export function streamResourceVersion(freshness: Freshness): string | undefined {
  return typeof freshness === 'string' ? undefined : freshness.atLeast;
}

/** The server has compacted the requested resourceVersion, or has not reached it. */
export function isLostVersion(error: unknown): boolean {
  return isExpired(error) || isTooLargeResourceVersion(error);
}
