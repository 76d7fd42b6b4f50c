import type { WithDefaults } from '../util/check-options.ts';

/** Options of `Reflector`. */
export interface ReflectorOptions {
  /**
   * Time without a byte after which a watch counts as stalled, in milliseconds. It applies if the
   * connection is not pinged, or if the watch has sent a bookmark. Servers send a bookmark about once a
   * minute; the default allows one to be 30 s late. On a server without bookmarks, a watch without
   * events is re-established at this interval.
   * @default 90_000
   */
  readonly stallMs?: number | undefined;
  /**
   * The same limit for a connection that answers pings, until the watch sends its first bookmark; servers
   * need not send any. Detects a server that answers pings while its watches hang.
   * @default 300_000
   */
  readonly quietMs?: number | undefined;
  /**
   * Timeout of one page of a list, in milliseconds. Servers time out after a minute.
   * @default 120_000
   */
  readonly listTimeoutMs?: number | undefined;
  /**
   * Longest pause in a stream of the initial state, in milliseconds.
   * @default 10_000
   */
  readonly streamPauseMs?: number | undefined;
  /**
   * Timeout of a stream of the initial state, in milliseconds.
   * @default 120_000
   */
  readonly streamTimeoutMs?: number | undefined;
  /**
   * Number of objects on a page. Use a smaller one for large objects, as servers limit the time and the
   * memory of an answer. If set, every list is paged, also one from the server's watch cache. A stream
   * of the initial state has no pages.
   * @default 500, for lists that are paged
   */
  readonly pageSize?: number | undefined;
}

export interface ReflectorLimits extends WithDefaults<Omit<ReflectorOptions, 'pageSize'>> {
  readonly pageSize: number | undefined;
  /**
   * Inactivity of the server after which the cache counts as stale, in milliseconds: `stallMs` for the
   * watch, and as long again for a new one.
   */
  readonly maxInactiveMs: number;
}

/** @throws {RangeError} if `pageSize` is not a positive integer */
export function limitsOf(options: ReflectorOptions = {}): ReflectorLimits {
  const { stallMs = 90_000, quietMs = 300_000, pageSize } = options;
  if (pageSize !== undefined && !(Number.isInteger(pageSize) && pageSize > 0)) {
    throw new RangeError(`pageSize: expected 1 or more objects, got ${pageSize}`);
  }
  return {
    stallMs,
    quietMs: Math.max(stallMs, quietMs),
    maxInactiveMs: 2 * stallMs,
    listTimeoutMs: options.listTimeoutMs ?? 120_000,
    streamPauseMs: options.streamPauseMs ?? 10_000,
    streamTimeoutMs: options.streamTimeoutMs ?? 120_000,
    pageSize,
  };
}
