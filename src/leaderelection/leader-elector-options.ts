import type { Lease } from '../api/builtin.ts';
import type { LeaseLockOptions } from './lease-lock.ts';

export interface LeaderElectorOptions extends LeaseLockOptions {
  /** What the lease calls this process: unique among all that may ever hold it. */
  readonly identity: string;
  /**
   * How long the others wait before they take over a lease that is not renewed, in milliseconds. In
   * the lease it is rounded up to seconds.
   * @default 15_000
   */
  readonly leaseDurationMs?: number | undefined;
  /**
   * How long a leader may go without a renewal, in milliseconds: then it has lost the lease, and
   * writes nothing from that moment on. What it sent before has `leaseDurationMs - renewDeadlineMs`
   * to be carried out before there can be another leader.
   * @default 10_000
   */
  readonly renewDeadlineMs?: number | undefined;
  /**
   * Pause between two renewals, and between two attempts to renew or acquire, in milliseconds.
   * @default 2_000
   */
  readonly retryPeriodMs?: number | undefined;
  /**
   * Share of the pause that candidates add at random, so that they do not come at once.
   * @default 1.2
   */
  readonly jitter?: number | undefined;
  /**
   * Give the lease back when `run` is stopped, so that the next leader need not wait for its end.
   * What the lease protects must have ended before the stop.
   * @default true
   */
  readonly releaseOnCancel?: boolean | undefined;
  /**
   * How long a lease is left to others, in milliseconds: from when it was seen to be given back, or
   * from its end where it was not renewed.
   * @default not at all
   */
  readonly deferMs?: ((lease: Lease) => number) | undefined;
  /**
   * How long after the end of its lease a leader that neither renewed nor gave up is unhealthy, in
   * milliseconds.
   * @default 20_000
   */
  readonly healthToleranceMs?: number | undefined;
}

export type ElectionTerms = {
  readonly [K in keyof Omit<LeaderElectorOptions, keyof LeaseLockOptions>]-?: NonNullable<
    LeaderElectorOptions[K]
  >;
};

/**
 * Fills in the defaults.
 *
 * @throws {RangeError} naming the field, what is expected of it, and its value
 */
export function electionTerms(options: LeaderElectorOptions): ElectionTerms {
  const {
    identity,
    leaseDurationMs = 15_000,
    renewDeadlineMs = 10_000,
    retryPeriodMs = 2_000,
    jitter = 1.2,
    releaseOnCancel = true,
    deferMs = () => 0,
    healthToleranceMs = 20_000,
  } = options;
  for (const field of ['identity', 'namespace', 'name'] as const) {
    if (!options[field]) throw new RangeError(`${field} must not be empty`);
  }
  for (const [field, ms] of Object.entries({ leaseDurationMs, renewDeadlineMs, retryPeriodMs })) {
    if (!(ms > 0 && Number.isFinite(ms))) {
      throw new RangeError(`${field} must be a positive number of milliseconds: got ${ms}`);
    }
  }
  for (const [field, value] of Object.entries({ jitter, healthToleranceMs })) {
    if (!(value >= 0)) throw new RangeError(`${field} must not be negative: got ${value}`);
  }
  if (leaseDurationMs <= renewDeadlineMs) {
    throw new RangeError(
      `leaseDurationMs must exceed renewDeadlineMs: got ${leaseDurationMs} and ${renewDeadlineMs}`,
    );
  }
  const factor = Math.max(1, jitter);
  if (renewDeadlineMs <= retryPeriodMs * factor) {
    throw new RangeError(
      `renewDeadlineMs must exceed ${factor} times retryPeriodMs: got ${renewDeadlineMs} and ${retryPeriodMs}`,
    );
  }
  return {
    identity,
    leaseDurationMs,
    renewDeadlineMs,
    retryPeriodMs,
    jitter,
    releaseOnCancel,
    deferMs,
    healthToleranceMs,
  };
}
