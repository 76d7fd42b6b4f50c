import { backoffMs, jittered } from '../util/backoff.ts';
import type { BackoffPolicy } from '../util/backoff.ts';
import type { Clock } from '../util/clock.ts';
import { TokenBucket } from '../util/token-bucket.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';

const BACKOFF: OptionNames<BackoffPolicy> = {
  initialMs: true,
  maxMs: true,
  factor: true,
  jitter: true,
};

const FAST_SLOW: OptionNames<FastSlowPolicy> = {
  fastMs: true,
  slowMs: true,
  fastAttempts: true,
};

const BUCKET: OptionNames<BucketPolicy> = {
  perSecond: true,
  burst: true,
};

/** Decides how long a key that failed has to wait. */
export interface RateLimiter<K> {
  /** Milliseconds until `key` may be tried again; counts one more failure of it. */
  when(key: K): number;
  /** `key` has succeeded, or is given up: its failures count no longer. */
  forget(key: K): void;
  /** Failures of `key` since it was last forgotten. */
  retries(key: K): number;
}

/**
 * 5 ms doubling to 5 min. The cap is what an object waits for after its cause was mended unnoticed:
 * client-go's 1000 s is longer than people do.
 */
export const DEFAULT_KEY_BACKOFF: BackoffPolicy = { initialMs: 5, maxMs: 300_000 };

/**
 * 5 s doubling to 5 min, for failures that another try rarely helps: the server rejects an object, and
 * accepts it after an admission policy has been removed, which no event reports.
 */
export const SLOW_KEY_BACKOFF: BackoffPolicy = { initialMs: 5000, maxMs: 300_000 };

/**
 * Each key climbs a ladder of its own.
 *
 * @param random numbers in [0, 1), for the policy's jitter
 */
export function exponentialLimiter<K>(
  policy: BackoffPolicy = DEFAULT_KEY_BACKOFF,
  random: () => number = Math.random,
): RateLimiter<K> {
  const { initialMs, maxMs, jitter = 0 } = policy;
  checkOptions(policy, BACKOFF, 'exponentialLimiter');
  requirePositive('initialMs', initialMs);
  requirePositive('maxMs', maxMs);
  return perKey((failures) => jittered(backoffMs(policy, failures), jitter, random));
}

/** Delays of a `fastSlowLimiter`. */
export interface FastSlowPolicy {
  readonly fastMs: number;
  readonly slowMs: number;
  /** How many failures of a key in a row are followed by `fastMs`. */
  readonly fastAttempts: number;
}

/** A few quick tries for each key, then slow ones. */
export function fastSlowLimiter<K>(policy: FastSlowPolicy): RateLimiter<K> {
  checkOptions(policy, FAST_SLOW, 'fastSlowLimiter');
  requirePositive('fastMs', policy.fastMs);
  requirePositive('slowMs', policy.slowMs);
  if (!(policy.fastAttempts >= 0)) {
    throw new RangeError(`fastAttempts must not be negative: got ${policy.fastAttempts}`);
  }
  return perKey((failures) => (failures < policy.fastAttempts ? policy.fastMs : policy.slowMs));
}

/** Rate and burst of a token bucket. */
export interface BucketPolicy {
  /** Tokens that come back each second. */
  readonly perSecond: number;
  /** Tokens the bucket holds; it starts full. */
  readonly burst: number;
}

/**
 * One token bucket for all keys together: each failure takes a token, and waits for it when there
 * is none left. It knows nothing of single keys.
 */
export function bucketLimiter<K>(policy: BucketPolicy, clock: Clock): RateLimiter<K> {
  checkOptions(policy, BUCKET, 'bucketLimiter');
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
 * The longest wait any of `limiters` asks for; all of them count the failure. client-go's default is
 * an `exponentialLimiter` from 5 ms to 1000 s beside a `bucketLimiter` of 10 a second, burst 100.
 */
export function maxOfLimiter<K>(...limiters: readonly RateLimiter<K>[]): RateLimiter<K> {
  return {
    when: (key) => Math.max(0, ...limiters.map((limiter) => limiter.when(key))),
    forget: (key) => limiters.forEach((limiter) => limiter.forget(key)),
    retries: (key) => Math.max(0, ...limiters.map((limiter) => limiter.retries(key))),
  };
}

/** As `limiter`, but never longer than `maxMs`. */
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
  const retries = (key: K) => failures.get(key) ?? 0;
  return {
    when: (key) => {
      const before = retries(key);
      failures.set(key, before + 1);
      return delayMs(before);
    },
    forget: (key) => void failures.delete(key),
    retries,
  };
}

function requirePositive(field: string, value: number): void {
  if (!(value > 0)) throw new RangeError(`${field} must be a positive number: got ${value}`);
}
