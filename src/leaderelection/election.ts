import type { Lease } from '../api/builtin.ts';
import { microTimestamp } from '../api/conditions.ts';
import { equalJson } from '../api/equal.ts';

export type LeaseSpec = NonNullable<Lease['spec']>;

/** A state of the lease, and since when we know it: in our own monotonic milliseconds. */
export interface Sighting {
  readonly lease: Lease;
  readonly sinceMs: number;
}

/**
 * What is known after `lease` was read. Its holder lives as long as the spec changes; metadata that
 * somebody edits is no sign of life.
 */
export function sight(before: Sighting | undefined, lease: Lease, nowMs: number): Sighting {
  const isKnown = before !== undefined && equalJson(before.lease.spec, lease.spec);
  return { lease, sinceMs: isKnown ? before.sinceMs : nowMs };
}

/** What a candidate may make of a lease. */
export type Verdict =
  | { readonly kind: 'mine' }
  /** Released, never held, or not renewed in time. */
  | { readonly kind: 'free' }
  /** Another holds it, and may until then. */
  | { readonly kind: 'taken'; readonly holder: string; readonly untilMs: number };

/**
 * Whose the lease is. The duration that counts is the one in the lease: who wrote it relies on it.
 * The times in it do not count, they are those of somebody else's clock.
 */
export function judge(
  sighting: Sighting,
  { identity, deferMs }: Candidacy,
  nowMs: number,
): Verdict {
  const { lease, sinceMs } = sighting;
  const holder = holderOf(lease);
  if (holder === identity) return { kind: 'mine' };
  const untilMs = (holder === '' ? sinceMs : expiry(sighting)) + deferMs(lease);
  return untilMs <= nowMs ? { kind: 'free' } : { kind: 'taken', holder, untilMs };
}

/** Who judges, and how long it leaves a lease that is free to others. */
export interface Candidacy {
  readonly identity: string;
  readonly deferMs: (lease: Lease) => number;
}

/** When the lease is free unless it is renewed. */
export function expiry({ lease, sinceMs }: Sighting): number {
  return sinceMs + (lease.spec?.leaseDurationSeconds ?? 0) * 1000;
}

/** Empty: nobody. */
export function holderOf(lease: Lease): string {
  return lease.spec?.holderIdentity ?? '';
}

export interface Claim {
  readonly identity: string;
  readonly durationSeconds: number;
  /** Wall-clock time, for people. */
  readonly nowMs: number;
}

/** `spec` as who renews it or takes it over writes it; undefined: of a lease that is created. */
export function claimed(spec: LeaseSpec | undefined, claim: Claim): LeaseSpec {
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

/** `spec` as its holder leaves it to whoever comes next. */
export function released(spec: LeaseSpec, nowMs: number): LeaseSpec {
  const now = microTimestamp(nowMs);
  return {
    ...spec,
    holderIdentity: '',
    // The server takes no 0; nobody waits for it where there is no holder.
    leaseDurationSeconds: 1,
    acquireTime: now,
    renewTime: now,
  };
}
