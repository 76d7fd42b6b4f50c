/** An exponential backoff as data. */
export interface BackoffPolicy {
  /** First delay in milliseconds. */
  readonly initialMs: number;
  /** Upper bound of a delay before jitter, in milliseconds. */
  readonly maxMs: number;
  /**
   * What a delay is multiplied by for the next one.
   * @default 2
   */
  readonly factor?: number;
  /**
   * Share of a delay that is added at random: a delay d becomes uniform in [d, d + jitter * d).
   * @default 0
   */
  readonly jitter?: number;
}

/** Delay before attempt number `attempt` (0 is the first retry), without jitter. Never overflows. */
export function backoffMs(policy: BackoffPolicy, attempt: number): number {
  const { initialMs, maxMs, factor = 2 } = policy;
  const delay = initialMs * factor ** attempt;
  return Number.isFinite(delay) ? Math.min(delay, maxMs) : maxMs;
}

/** Spreads `delayMs` by the policy's jitter. `random` gives numbers in [0, 1). */
export function jittered(delayMs: number, jitter: number, random: () => number): number {
  return delayMs + random() * jitter * delayMs;
}

/** A position on the ladder of one policy. */
export class Backoff {
  readonly #policy: BackoffPolicy;
  readonly #random: () => number;
  #attempt = 0;

  constructor(policy: BackoffPolicy, random: () => number = Math.random) {
    this.#policy = policy;
    this.#random = random;
  }

  /** Number of delays handed out since the last reset. */
  get attempts(): number {
    return this.#attempt;
  }

  /** The next delay in milliseconds, jittered; climbs one rung. */
  next(): number {
    const delay = backoffMs(this.#policy, this.#attempt++);
    return jittered(delay, this.#policy.jitter ?? 0, this.#random);
  }

  /** Back to the first rung. */
  reset(): void {
    this.#attempt = 0;
  }
}
