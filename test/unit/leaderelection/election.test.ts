import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Lease } from '../../../src/api/builtin.ts';
import { claimed, expiry, judge, released, sight } from '../../../src/leaderelection/election.ts';
import type { LeaseSpec } from '../../../src/leaderelection/election.ts';

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

describe('whose a lease is', () => {
  const candidacy = { identity: 'b', deferMs: () => 0 };
  const verdict = (spec: LeaseSpec | undefined, nowMs: number) =>
    judge({ lease: lease(spec), sinceMs: 1000 }, candidacy, nowMs);

  // upstream: 87b
  it('its holder has it for the duration that it says, from when it was first seen so', () => {
    const taken = { kind: 'taken', holder: 'a', untilMs: 16_000 };
    assert.deepEqual(verdict(held, 1000), taken);
    assert.deepEqual(verdict(held, 15_999), taken);
    assert.deepEqual(verdict(held, 16_000), { kind: 'free' });
  });

  // upstream: 87b
  it('the times in it do not count: they are of a clock that may be wrong', () => {
    for (const renewTime of ['1970-01-01T00:00:00.000000Z', '2999-01-01T00:00:00.000000Z']) {
      assert.equal(verdict({ ...held, renewTime }, 15_999).kind, 'taken');
      assert.equal(verdict({ ...held, renewTime }, 16_000).kind, 'free');
    }
  });

  // upstream: 87a
  it('released, never held, without duration or without spec, it is free at once', () => {
    const { leaseDurationSeconds: _, ...endless } = held;
    for (const spec of [{ ...held, holderIdentity: '' }, {}, endless, undefined]) {
      assert.deepEqual(verdict(spec, 1000), { kind: 'free' });
    }
  });

  it('free, it is left to others for as long as the candidate likes', () => {
    const modest = { identity: 'b', deferMs: () => 4000 };
    const at = (spec: LeaseSpec, nowMs: number) =>
      judge({ lease: lease(spec), sinceMs: 1000 }, modest, nowMs);
    const released = { ...held, holderIdentity: '' };
    assert.deepEqual(at(released, 4999), { kind: 'taken', holder: '', untilMs: 5000 });
    assert.deepEqual(at(released, 5000), { kind: 'free' });
    assert.deepEqual(at(held, 19_999), { kind: 'taken', holder: 'a', untilMs: 20_000 });
    assert.deepEqual(at(held, 20_000), { kind: 'free' });
  });

  // upstream: 87d
  it('mine is mine, also when it has expired', () => {
    const mine = { lease: lease(held), sinceMs: 0 };
    assert.deepEqual(judge(mine, { ...candidacy, identity: 'a' }, 1_000_000), { kind: 'mine' });
    assert.equal(expiry(mine), 15_000);
  });
});

describe('what is seen of a lease', () => {
  const before = { lease: lease(held), sinceMs: 1000 };

  it('is as old as its spec: labels that somebody edits are no sign of life', () => {
    const edited = lease({ ...held }, { edited: 'yes' });
    assert.deepEqual(sight(before, edited, 9000), { lease: edited, sinceMs: 1000 });
  });

  it('is new with any change of its spec, and when it is seen first', () => {
    const renewed = lease({ ...held, renewTime: '2026-01-01T12:00:00.000000Z' });
    assert.equal(sight(before, renewed, 9000).sinceMs, 9000);
    assert.equal(sight(before, lease(undefined), 9000).sinceMs, 9000);
    assert.equal(sight(undefined, lease(held), 9000).sinceMs, 9000);
  });
});

describe('a claim', () => {
  const claim = { identity: 'b', durationSeconds: 20, nowMs: NOON_MS };
  const now = '2026-01-01T12:00:00.000000Z';
  const mine = { holderIdentity: 'b', leaseDurationSeconds: 20, renewTime: now };

  // upstream: 87
  it('of a new lease begins at no transition', () => {
    assert.deepEqual(claimed(undefined, claim), { ...mine, acquireTime: now, leaseTransitions: 0 });
  });

  // upstream: 87d
  it('that renews keeps the time of acquisition and the transitions', () => {
    const { acquireTime, leaseTransitions } = held;
    const renewed = claimed({ ...held, holderIdentity: 'b' }, claim);
    assert.deepEqual(renewed, { ...mine, acquireTime, leaseTransitions });
  });

  // upstream: 87e
  it('that takes over is a transition, also from nobody and from a lease without spec', () => {
    const taken = { ...mine, acquireTime: now };
    assert.deepEqual(claimed(held, claim), { ...taken, leaseTransitions: 8 });
    assert.deepEqual(claimed({ ...held, holderIdentity: '' }, claim), {
      ...taken,
      leaseTransitions: 8,
    });
    assert.deepEqual(claimed({}, claim), { ...taken, leaseTransitions: 1 });
  });

  // upstream: 90c
  it('keeps what others have put into the spec', () => {
    const spec = { ...held, strategy: 'OldestEmulationVersion', preferredHolder: 'c' };
    assert.deepEqual({ ...claimed(spec, claim), ...held }, { ...spec });
  });
});

// upstream: 89a
it('a lease that is released has no holder, the least duration, and its transitions', () => {
  const now = '2026-01-01T12:00:00.000000Z';
  assert.deepEqual(released(held, NOON_MS), {
    holderIdentity: '',
    leaseDurationSeconds: 1,
    acquireTime: now,
    renewTime: now,
    leaseTransitions: 7,
  });
});
