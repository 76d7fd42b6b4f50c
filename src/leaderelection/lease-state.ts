import type { Lease } from '../api/builtin.ts';
import { microTimestamp } from '../api/conditions.ts';
import { equalJson } from '../api/equal.ts';

export type LeaseSpec = NonNullable<Lease['spec']>;

/** A state of the lease, and when this process first observed it, in monotonic milliseconds. */
export interface ObservedLease {
  readonly lease: Lease;
  readonly sinceMs: number;
}

/**
 * Returns the observation after `lease` was read. Only a changed spec counts as a renewal: a change of
 * the metadata does not.
 */
export function observe(
  before: ObservedLease | undefined,
  lease: Lease,
  nowMs: number,
): ObservedLease {
  const isKnown = before !== undefined && equalJson(before.lease.spec, lease.spec);
  return { lease, sinceMs: isKnown ? before.sinceMs : nowMs };
}

/** The state of a lease from the view of one candidate. */
export type LeaseState =
  | { readonly kind: 'mine' }
  /** Released, never held, or not renewed in time. */
  | { readonly kind: 'free' }
  /** Another process holds it, and may do so until `untilMs`. */
  | { readonly kind: 'taken'; readonly holder: string; readonly untilMs: number };

/**
 * Returns whether the lease is ours, free or taken. Uses the duration in the lease, because its holder
 * relies on it. Ignores the times in the lease, because they come from another clock.
 */
export function leaseState(
  observed: ObservedLease,
  { identity, deferMs }: CandidateTerms,
  nowMs: number,
): LeaseState {
  const { lease, sinceMs } = observed;
  const holder = holderOf(lease);
  if (holder === identity) return { kind: 'mine' };
  const untilMs = (holder === '' ? sinceMs : expiresAtMs(observed)) + deferMs(lease);
  return untilMs <= nowMs ? { kind: 'free' } : { kind: 'taken', holder, untilMs };
}

/** The candidate, and how long it leaves a free lease to others. */
export interface CandidateTerms {
  readonly identity: string;
  readonly deferMs: (lease: Lease) => number;
}

/** Returns when the lease expires unless it is renewed, in monotonic milliseconds. */
export function expiresAtMs({ lease, sinceMs }: ObservedLease): number {
  return sinceMs + (lease.spec?.leaseDurationSeconds ?? 0) * 1000;
}

/** Returns the identity of the holder; empty if the lease is not held. */
export function holderOf(lease: Lease): string {
  return lease.spec?.holderIdentity ?? '';
}

/** Arguments of `claimedSpec`, besides the current spec. */
export interface ClaimOptions {
  readonly identity: string;
  readonly durationSeconds: number;
  /** Wall-clock time, for information only. */
  readonly nowMs: number;
}

/** Returns the spec that renews or acquires a lease. @param spec undefined for a new lease */
export function claimedSpec(spec: LeaseSpec | undefined, claim: ClaimOptions): LeaseSpec {
  const { identity, durationSeconds, nowMs } = claim;
  const now = microTimestamp(nowMs);
  const isMine = spec?.holderIdentity === identity;
  return {
    ...spec,
    holderIdentity: identity,
    leaseDurationSeconds: durationSeconds,
    acquireTime: (isMine && spec.acquireTime) || now,
    renewTime: now,
    leaseTransitions: (spec?.leaseTransitions ?? 0) + (spec && !isMine ? 1 : 0),
  };
}

/** Returns the spec that releases a lease. */
export function releasedSpec(spec: LeaseSpec, nowMs: number): LeaseSpec {
  const now = microTimestamp(nowMs);
  return {
    ...spec,
    holderIdentity: '',
    // The server rejects 0. Without a holder, candidates do not wait for it.
    leaseDurationSeconds: 1,
    acquireTime: now,
    renewTime: now,
  };
}
