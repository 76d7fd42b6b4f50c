import type { Clock } from './clock.ts';

/** Options of `TokenBucket`. */
export interface TokenBucketOptions {
  /** Number of tokens in the full bucket. The bucket starts full. */
  readonly burst: number;
  /** Time after which one more token is added, in milliseconds. */
  readonly intervalMs: number;
}

/** A token bucket, as in `golang.org/x/time/rate`. */
export class TokenBucket {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #burstMs: number;
  readonly #intervalMs: number;
  /** Time at which the bucket was or will be empty. Later than now if tokens are reserved in advance. */
  #emptyAtMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Pick<Clock, 'monotonic'>, { burst, intervalMs }: TokenBucketOptions) {
    this.#clock = clock;
    this.#burstMs = burst * intervalMs;
    this.#intervalMs = intervalMs;
  }

  /** Takes a token if there is one. Returns whether there was. */
  tryTake(): boolean {
    const now = this.#clock.monotonic();
    const emptyAtMs = this.#afterTake(now);
    if (emptyAtMs > now) return false;
    this.#emptyAtMs = emptyAtMs;
    return true;
  }

  /** Reserves the next token. Returns the time until it is available, in milliseconds. */
  reserve(): number {
    const now = this.#clock.monotonic();
    this.#emptyAtMs = this.#afterTake(now);
    return Math.max(0, this.#emptyAtMs - now);
  }

  #afterTake(now: number): number {
    return Math.max(this.#emptyAtMs, now - this.#burstMs) + this.#intervalMs;
  }
}
