/** Parameters of an exponential backoff. */
export interface BackoffPolicy {
  /** First delay in milliseconds. */
  readonly initialMs: number;
  /** Upper bound of a delay before jitter, in milliseconds. */
  readonly maxMs: number;
  /**
   * Multiplier from one delay to the next.
   * @default 2
   */
  readonly factor?: number;
  /**
   * Maximum random addition as a fraction of the delay: d becomes uniform in [d, d + jitter * d).
   * @default 0
   */
  readonly jitter?: number;
}

/** Returns the delay before retry number `attempt`, counted from 0, in milliseconds and without jitter. */
export function backoffMs(policy: BackoffPolicy, attempt: number): number {
  const { initialMs, maxMs, factor = 2 } = policy;
  const delay = initialMs * factor ** attempt;
  return Number.isFinite(delay) ? Math.min(delay, maxMs) : maxMs;
}

/** Adds random jitter to `delayMs`. `random` returns numbers in [0, 1). */
export function withJitter(delayMs: number, jitter: number, random: () => number): number {
  return delayMs + random() * jitter * delayMs;
}

/** The delays of one sequence of retries. */
export class Backoff {
  readonly #policy: BackoffPolicy;
  readonly #random: () => number;
  #attempt = 0;

  constructor(policy: BackoffPolicy, random: () => number = Math.random) {
    this.#policy = policy;
    this.#random = random;
  }

  /** Number of delays since the last reset. */
  get attempts(): number {
    return this.#attempt;
  }

  /** Returns the next delay with jitter, in milliseconds. */
  next(): number {
    const delay = backoffMs(this.#policy, this.#attempt++);
    return withJitter(delay, this.#policy.jitter ?? 0, this.#random);
  }

  /** Restarts with the initial delay. */
  reset(): void {
    this.#attempt = 0;
  }
}
