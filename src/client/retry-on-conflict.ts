import { isApiError } from '../api/api-error.ts';
import { withJitter } from '../util/backoff.ts';
import type { Clock } from '../util/clock.ts';
import { systemClock } from '../util/clock.ts';

/** Options of {@link retryOnConflict}. */
export interface RetryOnConflictOptions {
  readonly signal?: AbortSignal | undefined;
  /**
   * Maximum number of calls.
   * @default 5
   */
  readonly steps?: number | undefined;
  /**
   * Delay between two calls, in milliseconds; a jitter of up to 10 % is added. With 0, the next call follows at once.
   * @default 10
   */
  readonly pauseMs?: number | undefined;
  /** @default the machine's clock */
  readonly clock?: Pick<Clock, 'sleep'> | undefined;
  /** @default Math.random */
  readonly random?: (() => number) | undefined;
}

const JITTER = 0.1;

/**
 * Calls `change` until it does not fail with a `conflict`, as client-go's RetryOnConflict does. `change` must
 * read the object again, from the server and not from a cache; otherwise the next attempt conflicts too.
 * Rejects with any other error, and with the last conflict.
 *
 * @example
 * ```ts
 * import { ApiError, retryOnConflict } from 'crd-controller';
 *
 * let attempts = 0;
 * const result = await retryOnConflict(async () => {
 *   if (++attempts === 1) throw new ApiError({ kind: 'conflict', message: 'changed meanwhile' });
 *   return 'written';
 * });
 * console.log(result, attempts); // prints: written 2
 * ```
 */
export async function retryOnConflict<T>(
  change: () => Promise<T>,
  options: RetryOnConflictOptions = {},
): Promise<T> {
  const { signal, steps = 5, pauseMs = 10, clock = systemClock, random = Math.random } = options;
  for (let step = 1; ; step++) {
    signal?.throwIfAborted();
    try {
      return await change();
    } catch (error) {
      if (!isApiError(error, 'conflict') || step >= steps) throw error;
    }
    if (pauseMs > 0) await clock.sleep(withJitter(pauseMs, JITTER, random), signal);
  }
}
