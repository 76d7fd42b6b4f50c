import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Lease } from '../../../src/api/builtin.ts';
import {
  claimedSpec,
  leaseState,
  releasedSpec,
  observe,
} from '../../../src/leaderelection/lease-state.ts';
import type { LeaseSpec } from '../../../src/leaderelection/lease-state.ts';

const NOON_MS = Date.UTC(2026, 0, 1, 12);

function lease(spec: LeaseSpec | undefined, labels: Record<string, string> = {}): Lease {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: {
      name: 'lock',
      namespace: 'default',
      uid: 'u',
      resourceVersion: '1',
      creationTimestamp: '2026-01-01T00:00:00Z',
      labels,
    },
    ...(spec && { spec }),
  };
}

const held: LeaseSpec = {
  holderIdentity: 'a',
  leaseDurationSeconds: 15,
  acquireTime: '2026-01-01T11:00:00.000000Z',
  renewTime: '2026-01-01T11:59:58.000000Z',
  leaseTransitions: 7,
};

describe('leaseState', () => {
  const candidate = { identity: 'b', deferMs: () => 0 };
  const verdict = (spec: LeaseSpec | undefined, nowMs: number) =>
    leaseState(observe(undefined, lease(spec), 1000), candidate, nowMs);

  // upstream: 87b
  it('is taken for the duration in the lease, counted from the first observation', () => {
    const taken = { kind: 'taken', holder: 'a', untilMs: 16_000 };
    assert.deepEqual(verdict(held, 1000), taken);
    assert.deepEqual(verdict(held, 15_999), taken);
    assert.deepEqual(verdict(held, 16_000), { kind: 'free' });
  });

  // upstream: 87b
  it('ignores the timestamps in the lease', () => {
    for (const renewTime of ['1970-01-01T00:00:00.000000Z', '2999-01-01T00:00:00.000000Z']) {
      assert.equal(verdict({ ...held, renewTime }, 15_999).kind, 'taken');
      assert.equal(verdict({ ...held, renewTime }, 16_000).kind, 'free');
    }
  });

  // upstream: 87a
  it('is free at once if released, never held, without duration or without spec', () => {
    const { leaseDurationSeconds: _, ...endless } = held;
    for (const spec of [releasedSpec(held, 0), {}, endless, undefined]) {
      assert.deepEqual(verdict(spec, 1000), { kind: 'free' });
    }
  });

  it('is taken while a free lease is deferred', () => {
    const modest = { identity: 'b', deferMs: () => 4000 };
    const at = (spec: LeaseSpec, nowMs: number) =>
      leaseState(observe(undefined, lease(spec), 1000), modest, nowMs);
    const free = releasedSpec(held, 0);
    assert.deepEqual(at(free, 4999), { kind: 'taken', holder: '', untilMs: 5000 });
    assert.deepEqual(at(free, 5000), { kind: 'free' });
    assert.deepEqual(at(held, 19_999), { kind: 'taken', holder: 'a', untilMs: 20_000 });
    assert.deepEqual(at(held, 20_000), { kind: 'free' });
  });

  // upstream: 87d
  it('is mine also after expiry', () => {
    const mine = observe(undefined, lease(held), 0);
    assert.deepEqual(leaseState(mine, { ...candidate, identity: 'a' }, 1_000_000), {
      kind: 'mine',
    });
    assert.equal(mine.untilMs, 15_000);
  });
});

describe('observe', () => {
  const before = observe(undefined, lease(held), 1000);
  const { leaseDurationSeconds: _, ...endless } = held;

  it('keeps the expiry if only metadata changed', () => {
    const edited = lease({ ...held }, { edited: 'yes' });
    assert.deepEqual(observe(before, edited, 9000), { lease: edited, untilMs: 16_000 });
  });

  it('ends a claim only by its expiry or its release', () => {
    const table: readonly (readonly [string, Lease | undefined, number])[] = [
      ['renewed', lease({ ...held, renewTime: '2026-01-01T12:00:00.000000Z' }), 24_000],
      ['released', lease(releasedSpec(held, NOON_MS)), 9000],
      ['deleted', undefined, 24_000],
      ['wiped', lease(undefined), 24_000],
      ['emptied', lease({ ...held, holderIdentity: '' }), 24_000],
      ['overwritten with a short duration', lease({ ...held, leaseDurationSeconds: 1 }), 24_000],
      ['overwritten without a duration', lease(endless), 24_000],
      ['acquired for longer', lease({ ...held, leaseDurationSeconds: 60 }), 69_000],
    ];
    for (const [what, after, untilMs] of table) {
      assert.equal(observe(before, after, 9000).untilMs, untilMs, what);
    }
  });

  it('does not extend a claim that has disappeared', () => {
    const gone = observe(before, undefined, 9000);
    assert.deepEqual(observe(gone, undefined, 12_000), { lease: undefined, untilMs: 24_000 });
    assert.equal(observe(gone, lease(undefined), 12_000).untilMs, 24_000);
    assert.equal(observe(undefined, undefined, 9000).untilMs, 9000);
  });
});

describe('claimedSpec', () => {
  const claim = { identity: 'b', durationSeconds: 20, nowMs: NOON_MS };
  const now = '2026-01-01T12:00:00.000000Z';
  const mine = { holderIdentity: 'b', leaseDurationSeconds: 20, renewTime: now };

  // upstream: 87
  it('starts a new lease with 0 transitions', () => {
    assert.deepEqual(claimedSpec(undefined, claim), {
      ...mine,
      acquireTime: now,
      leaseTransitions: 0,
    });
  });

  // upstream: 87d
  it('keeps acquireTime and transitions at a renewal', () => {
    const { acquireTime, leaseTransitions } = held;
    const renewed = claimedSpec({ ...held, holderIdentity: 'b' }, claim);
    assert.deepEqual(renewed, { ...mine, acquireTime, leaseTransitions });
  });

  // upstream: 87e
  it('counts a transition at each acquisition, also of a free lease', () => {
    const taken = { ...mine, acquireTime: now };
    assert.deepEqual(claimedSpec(held, claim), { ...taken, leaseTransitions: 8 });
    assert.deepEqual(claimedSpec({ ...held, holderIdentity: '' }, claim), {
      ...taken,
      leaseTransitions: 8,
    });
    assert.deepEqual(claimedSpec({}, claim), { ...taken, leaseTransitions: 1 });
  });

  // upstream: 90c
  it('keeps unknown fields of the spec', () => {
    const spec = { ...held, strategy: 'OldestEmulationVersion', preferredHolder: 'c' };
    assert.deepEqual({ ...claimedSpec(spec, claim), ...held }, { ...spec });
  });
});

// upstream: 89a
it('releasedSpec has no holder, the minimum duration, and the same transitions', () => {
  const now = '2026-01-01T12:00:00.000000Z';
  assert.deepEqual(releasedSpec(held, NOON_MS), {
    holderIdentity: '',
    leaseDurationSeconds: 1,
    acquireTime: now,
    renewTime: now,
    leaseTransitions: 7,
  });
});
