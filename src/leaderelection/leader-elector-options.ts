import { randomUUID } from 'node:crypto';
import type { Lease } from '../api/builtin.ts';
import type { LeaseLockOptions } from './lease-lock.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';

/** The names of the options. */
export const ELECTOR_OPTIONS: OptionNames<LeaderElectorOptions> = {
  namespace: true,
  name: true,
  labels: true,
  identity: true,
  leaseDurationMs: true,
  renewDeadlineMs: true,
  retryPeriodMs: true,
  jitter: true,
  releaseOnCancel: true,
  deferMs: true,
  healthToleranceMs: true,
};

/** Options of `LeaderElector`. */
export interface LeaderElectorOptions extends LeaseLockOptions {
  /** Identity of this process in the lease: unique among all candidates. */
  readonly identity: string;
  /**
   * How long candidates wait before they acquire a lease that is not renewed, in milliseconds. Rounded up
   * to seconds in the lease.
   * @default 15_000
   */
  readonly leaseDurationMs?: number | undefined;
  /**
   * Time without a successful renewal after which the leader has lost the lease, in milliseconds. It sends no
   * write from then on. Requests in flight have `leaseDurationMs - renewDeadlineMs` to complete before
   * another process can lead.
   * @default 10_000
   */
  readonly renewDeadlineMs?: number | undefined;
  /**
   * Time between renewals, and between attempts to renew or acquire, in milliseconds.
   * @default 2_000
   */
  readonly retryPeriodMs?: number | undefined;
  /**
   * Fraction of the retry period that candidates add at random, so that they do not retry together.
   * @default 1.2
   */
  readonly jitter?: number | undefined;
  /**
   * Release the lease when `run` is stopped, so that the next leader does not wait until it expires. The
   * work that the lease protects must have ended before the stop.
   * @default true
   */
  readonly releaseOnCancel?: boolean | undefined;
  /**
   * How long a free lease is left to other candidates, in milliseconds, counted from its release or
   * expiry.
   * @default 0
   */
  readonly deferMs?: ((lease: Lease) => number) | undefined;
  /**
   * How long after the expiry of its lease a leader that neither renewed nor exited becomes unhealthy, in
   * milliseconds.
   * @default 20_000
   */
  readonly healthToleranceMs?: number | undefined;
}

const RENEW_DEADLINE_MS = 10_000;

/** Returns a timeout of requests for a Lease, in milliseconds: a single one without a response must not lose it. */
export function leaseTimeoutMs(renewDeadlineMs: number = RENEW_DEADLINE_MS): number {
  return Math.max(1000, renewDeadlineMs / 2);
}

/** Returns a new identity of a process, with the name of its host or Pod. */
export function newIdentity(host: string): string {
  return `${host}_${randomUUID()}`;
}

export type ElectionSettings = {
  readonly [K in keyof Omit<LeaderElectorOptions, keyof LeaseLockOptions>]-?: NonNullable<
    LeaderElectorOptions[K]
  >;
};

/**
 * Returns the options with defaults.
 *
 * @throws {RangeError} with the field, the expected value and the actual value
 */
export function electionSettings(options: LeaderElectorOptions): ElectionSettings {
  checkOptions(options, ELECTOR_OPTIONS, 'leader election');
  const {
    identity,
    leaseDurationMs = 15_000,
    renewDeadlineMs = RENEW_DEADLINE_MS,
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
