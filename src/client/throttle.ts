import type { Clock } from '../util/clock.ts';
import { TokenBucket } from '../util/token-bucket.ts';

export interface ThrottleOptions {
  /** Requests a second, in the long run. */
  readonly qps: number;
  /** Requests at once, after a rest. */
  readonly burst: number;
  readonly clock: Clock;
}

/**
 * A token bucket that makes callers wait, in the order they came. Tokens are reserved on arrival:
 * a caller that gives up leaves its token unused.
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

  /** Resolves when the caller may send, or its signal aborts; returns how long that took, in ms. */
  async wait(signal?: AbortSignal): Promise<number> {
    const now = this.#clock.monotonic();
    const waitMs = this.#bucket.reserve();
    if (waitMs === 0) return 0;
    await this.#clock.sleep(waitMs, signal);
    return this.#clock.monotonic() - now;
  }
}
