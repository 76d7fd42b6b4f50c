import type { Clock } from '../util/clock.ts';
import { TokenBucket } from '../util/token-bucket.ts';

/** Options of `Throttle`. */
export interface ThrottleOptions {
  /** Average number of requests a second. */
  readonly qps: number;
  /** Number of requests that can be sent at once. */
  readonly burst: number;
  readonly clock: Clock;
}

/**
 * Client-side rate limiter: a token bucket that makes callers wait in order of arrival. A token is reserved on
 * arrival; a caller that aborts does not return it.
 */
export class Throttle {
  readonly #clock: Clock;
  readonly #bucket: TokenBucket;

  constructor({ qps, burst, clock }: ThrottleOptions) {
    if (!(qps > 0)) throw new RangeError(`qps must be above 0, got ${qps}`);
    if (!(burst >= 1)) throw new RangeError(`burst must be at least 1, got ${burst}`);
    this.#clock = clock;
    this.#bucket = new TokenBucket(clock, { burst, intervalMs: 1000 / qps });
  }

  /** Resolves when the caller may send or its signal aborts; returns the waiting time in milliseconds. */
  async wait(signal?: AbortSignal): Promise<number> {
    const now = this.#clock.monotonic();
    const waitMs = this.#bucket.reserve();
    if (waitMs === 0) return 0;
    await this.#clock.sleep(waitMs, signal);
    return this.#clock.monotonic() - now;
  }
}
