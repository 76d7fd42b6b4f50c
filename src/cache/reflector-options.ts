import type { KubernetesObject } from '../api/object.ts';
import type { InformerMetrics } from '../metrics/reflector-metrics.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import type { DeltaSink } from './delta-queue.ts';
import type { ListerWatcher } from './lister-watcher.ts';
import type { FailureLog } from './failure-log.ts';
import type { WatchListSupport } from './reflector-watch.ts';

/** Dependencies of `Reflector`. */
export interface ReflectorDeps<T extends KubernetesObject> {
  readonly source: ListerWatcher<T>;
  readonly sink: DeltaSink<T>;
  readonly clock: Clock;
  readonly log: Logger;
  /**
   * Numbers in [0, 1), for jitter.
   * @default Math.random
   */
  readonly random?: (() => number) | undefined;
  readonly metrics?: InformerMetrics | undefined;
  /**
   * Shared by the reflectors of one server.
   * @default one of its own
   */
  readonly watchList?: WatchListSupport | undefined;
  /**
   * Shared by the reflectors of one server, whose failures of one cause are one log line then.
   * @default one of its own
   */
  readonly troubles?: FailureLog | undefined;
}

/** Options of `Reflector`. */
export interface ReflectorOptions {
  /**
   * How long a watch may be silent, in milliseconds, where only what it says shows that it lives.
   * Servers send a bookmark about once a minute even when nothing changes; a minute and a half
   * leaves room for one that is late. On a server that sends none, a quiet watch is merely begun
   * anew this often.
   * @default 90_000
   */
  readonly stallMs?: number;
  /**
   * The same where the connection answers pings and the watch has sent no bookmark so far, which
   * servers may leave out. A server that answers pings while its watches hang is noticed by this.
   * @default 300_000
   */
  readonly quietMs?: number;
  /**
   * How long one page of a list may take, in milliseconds. Servers give up after a minute.
   * @default 120_000
   */
  readonly listTimeoutMs?: number;
  /**
   * How long a stream of the initial state may pause without having told its end, in milliseconds.
   * @default 10_000
   */
  readonly streamPauseMs?: number;
  /**
   * How long a stream of the initial state may take, in milliseconds.
   * @default 120_000
   */
  readonly streamTimeoutMs?: number;
  /**
   * Objects on a page: fewer where they are large, as servers bound the time and the memory of an
   * answer. Every list comes in such pages then, also those that a server answers in one piece from
   * its watch cache. A stream of the initial state has no pages.
   * @default 500, where a list comes in pages
   */
  readonly pageSize?: number | undefined;
}

export interface ReflectorLimits extends Required<ReflectorOptions> {
  /**
   * After how much silence of the server a mirror is no longer believed, in milliseconds: the longest
   * a healthy watch goes without a sign of life, and as long again to have a new one answered.
   */
  readonly maxInactiveMs: number;
}

/** @throws {RangeError} naming an option that makes no sense */
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
