import type { Lease } from '../api/builtin.ts';
import { microTimestamp } from '../api/conditions.ts';
import { equalJson } from '../api/equal.ts';

export type LeaseSpec = NonNullable<Lease['spec']>;

/** Duration in a released lease: the server rejects 0. */
const RELEASED_SECONDS = 1;

/** A state of the lease, and how long a process may rely on a claim to it. */
export interface ObservedLease {
  /** Undefined if the lease does not exist. */
  readonly lease: Lease | undefined;
  /** When the last claim was released or expires, in monotonic milliseconds. */
  readonly untilMs: number;
}

/**
 * Returns the observation after `lease` was read; undefined if it does not exist. Only a changed spec counts as a
 * renewal: a change of the metadata does not.
 *
 * **Only its holder ends a claim early**, by a release. If another client deletes, empties or overwrites the lease, its
 * holder may not have noticed, and may have renewed until this moment: the claim expires after its duration, counted
 * from now. A lease that was never held is free.
 */
export function observe(
  before: ObservedLease | undefined,
  lease: Lease | undefined,
  nowMs: number,
): ObservedLease {
  if (before && !before.lease === !lease && equalJson(before.lease?.spec, lease?.spec)) {
    return { lease, untilMs: before.untilMs };
  }
  if (isReleased(lease)) return { lease, untilMs: nowMs };
  const claimMs = Math.max(claimDurationMs(before?.lease), claimDurationMs(lease));
  return { lease, untilMs: Math.max(before?.untilMs ?? nowMs, nowMs + claimMs) };
}

/** The state of a lease from the view of one candidate. */
export type LeaseState =
  | { readonly kind: 'mine' }
  /** Released, never held, or not renewed in time. */
  | { readonly kind: 'free' }
  /** Another process holds it, and may do so until `untilMs`. Without a holder: it did not release the lease. */
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
  const { lease } = observed;
  const holder = holderOf(lease);
  if (holder === identity) return { kind: 'mine' };
  const untilMs = observed.untilMs + (lease ? deferMs(lease) : 0);
  return untilMs <= nowMs ? { kind: 'free' } : { kind: 'taken', holder, untilMs };
}

/** The candidate, and how long it leaves a free lease to others. */
export interface CandidateTerms {
  readonly identity: string;
  readonly deferMs: (lease: Lease) => number;
}

/** Returns the identity of the holder; empty if the lease is not held or does not exist. */
export function holderOf(lease: Lease | undefined): string {
  return lease?.spec?.holderIdentity ?? '';
}

/** Returns how long the last holder may rely on the lease, in milliseconds; 0 if there was none. */
function claimDurationMs(lease: Lease | undefined): number {
  const { holderIdentity, renewTime, leaseDurationSeconds = 0 } = lease?.spec ?? {};
  return holderIdentity || renewTime ? leaseDurationSeconds * 1000 : 0;
}

/** Returns whether the holder released the lease, in the form of `releasedSpec`, which client-go writes, too. */
export function isReleased(lease: Lease | undefined): boolean {
  const { holderIdentity, leaseDurationSeconds, acquireTime, renewTime } = lease?.spec ?? {};
  return (
    !holderIdentity &&
    leaseDurationSeconds === RELEASED_SECONDS &&
    renewTime !== undefined &&
    acquireTime === renewTime
  );
}

/** Arguments of `claimedSpec`, besides the current spec. */
export interface LeaseClaimOptions {
  readonly identity: string;
  readonly durationSeconds: number;
  /** Wall-clock time, for information only. */
  readonly nowMs: number;
}

/** Returns the spec that renews or acquires a lease. @param spec undefined for a new lease */
export function claimedSpec(spec: LeaseSpec | undefined, claim: LeaseClaimOptions): LeaseSpec {
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
    leaseDurationSeconds: RELEASED_SECONDS,
    acquireTime: now,
    renewTime: now,
  };
}
