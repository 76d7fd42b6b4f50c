import { backoffMs, withJitter } from '../util/backoff.ts';
import type { BackoffPolicy } from '../util/backoff.ts';
import type { Clock } from '../util/clock.ts';
import { TokenBucket } from '../util/token-bucket.ts';

/** Determines the delay of retries. */
export interface RateLimiter<K> {
  /** Counts a failure of `key` and returns the delay of its retry in milliseconds. */
  when(key: K): number;
  /** Resets the failures of `key`, after a success or when it is dropped. */
  forget(key: K): void;
  /** Returns the number of failures of `key` since `forget`. */
  retries(key: K): number;
}

/**
 * 5 ms doubling to 5 min. An object waits for up to this maximum after its cause was resolved without an
 * event, so client-go's 1000 s is too long.
 */
const DEFAULT_KEY_BACKOFF: BackoffPolicy = { initialMs: 5, maxMs: 300_000 };

/**
 * 5 s doubling to 5 min, for failures that a retry rarely resolves: the server rejects an object until an
 * admission policy is removed, which no event reports.
 */
export const SLOW_KEY_BACKOFF: BackoffPolicy = { initialMs: 5000, maxMs: 300_000 };

/**
 * Returns a limiter with an exponential backoff per key.
 *
 * @param random returns numbers in [0, 1), for the jitter
 *
 * @example
 * ```ts
 * import { exponentialLimiter } from 'crd-controller/workqueue';
 *
 * const limiter = exponentialLimiter<string>({ initialMs: 5, maxMs: 1000 });
 * console.log(limiter.when('web'), limiter.when('web'), limiter.when('web')); // prints: 5 10 20
 * ```
 */
export function exponentialLimiter<K>(
  policy: BackoffPolicy = DEFAULT_KEY_BACKOFF,
  random: () => number = Math.random,
): RateLimiter<K> {
  const { initialMs, maxMs, jitter = 0 } = policy;
  requirePositive('initialMs', initialMs);
  requirePositive('maxMs', maxMs);
  return perKey((failures) => withJitter(backoffMs(policy, failures), jitter, random));
}

/** Delays of a `fastSlowLimiter`. */
export interface FastSlowPolicy {
  readonly fastMs: number;
  readonly slowMs: number;
  /** Number of consecutive failures that are retried after `fastMs`. */
  readonly fastAttempts: number;
}

/** Returns a limiter with a few fast retries per key, then slow ones. */
export function fastSlowLimiter<K>(policy: FastSlowPolicy): RateLimiter<K> {
  requirePositive('fastMs', policy.fastMs);
  requirePositive('slowMs', policy.slowMs);
  if (!(policy.fastAttempts >= 0)) {
    throw new RangeError(`fastAttempts must not be negative: got ${policy.fastAttempts}`);
  }
  return perKey((failures) => (failures < policy.fastAttempts ? policy.fastMs : policy.slowMs));
}

/** Rate and burst of a token bucket. */
export interface BucketPolicy {
  /** Tokens added per second. */
  readonly perSecond: number;
  /** Capacity of the bucket, which starts full. */
  readonly burst: number;
}

/**
 * Returns a limiter with one token bucket for all keys. Each failure takes a token, or waits for the next
 * one. It does not count failures of single keys.
 */
export function bucketLimiter<K>(policy: BucketPolicy, clock: Clock): RateLimiter<K> {
  const { perSecond, burst } = policy;
  requirePositive('perSecond', perSecond);
  requirePositive('burst', burst);
  const bucket = new TokenBucket(clock, { burst, intervalMs: 1000 / perSecond });
  return {
    when: () => bucket.reserve(),
    forget: () => undefined,
    retries: () => 0,
  };
}

/**
 * Returns a limiter with the longest delay of `limiters`, which all count the failure. client-go's default
 * combines an `exponentialLimiter` from 5 ms to 1000 s with a `bucketLimiter` of 10 per second, burst 100.
 */
export function maxOfLimiter<K>(...limiters: readonly RateLimiter<K>[]): RateLimiter<K> {
  return {
    when: (key) => Math.max(0, ...limiters.map((limiter) => limiter.when(key))),
    forget: (key) => limiters.forEach((limiter) => limiter.forget(key)),
    retries: (key) => Math.max(0, ...limiters.map((limiter) => limiter.retries(key))),
  };
}

/** Limits the delays of `limiter` to `maxMs`. */
export function withMaxWait<K>(limiter: RateLimiter<K>, maxMs: number): RateLimiter<K> {
  requirePositive('maxMs', maxMs);
  return {
    when: (key) => Math.min(maxMs, limiter.when(key)),
    forget: (key) => limiter.forget(key),
    retries: (key) => limiter.retries(key),
  };
}

function perKey<K>(delayMs: (failures: number) => number): RateLimiter<K> {
  const failures = new Map<K, number>();
  const retries = (key: K) => (failures.size === 0 ? 0 : (failures.get(key) ?? 0));
  return {
    when: (key) => {
      const before = retries(key);
      failures.set(key, before + 1);
      return delayMs(before);
    },
    forget: (key) => {
      // Most keys never fail. A lookup hashes the key, so it is skipped if the map is empty.
      if (failures.size > 0) failures.delete(key);
    },
    retries,
  };
}

function requirePositive(field: string, value: number): void {
  if (!(value > 0)) throw new RangeError(`${field} must be a positive number: got ${value}`);
}
