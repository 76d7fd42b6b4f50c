import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Lease } from '../../../src/api/builtin.ts';
import { claimedSpec, releasedSpec } from '../../../src/leaderelection/lease-state.ts';
import { requesterOf, withRequest } from '../../../src/sharding/shard-request.ts';

const claim = (identity: string) => ({ identity, durationSeconds: 15, nowMs: 0 });

const lease: Lease = {
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: {
    namespace: 'default',
    name: 'shard-0',
    uid: 'u',
    resourceVersion: '1',
    creationTimestamp: '2026-01-01T12:00:00Z',
    annotations: { other: 'kept' },
  },
  spec: claimedSpec({ holderIdentity: 'z', leaseTransitions: 4 }, claim('a')),
};

describe('a shard request', () => {
  const asked = withRequest(lease, 'b');
  const passedTo = (identity: string) => ({
    ...asked,
    spec: claimedSpec(asked.spec, claim(identity)),
  });

  it('is visible to the holder and keeps other annotations', () => {
    assert.equal(requesterOf(lease), undefined);
    assert.equal(requesterOf(asked), 'b');
    assert.equal(asked.metadata.annotations?.['other'], 'kept');
  });

  it('remains after a renewal and after the release', () => {
    assert.equal(requesterOf(passedTo('a')), 'b');
    assert.equal(requesterOf({ ...asked, spec: releasedSpec(asked.spec ?? {}, 0) }), 'b');
  });

  it('ends when another replica acquires the lease', () => {
    for (const next of ['b', 'c']) assert.equal(requesterOf(passedTo(next)), undefined);
    const again = passedTo('b');
    assert.equal(requesterOf({ ...again, spec: releasedSpec(again.spec, 0) }), undefined);
  });

  it('is ignored if malformed', () => {
    for (const value of ['', 'b', '5', '5 ', 'x b', '6 b']) {
      const isWish = (key: string) => key !== 'other';
      const name = Object.keys(asked.metadata.annotations ?? {}).find(isWish) ?? '';
      const annotations = { [name]: value };
      assert.equal(
        requesterOf({ ...lease, metadata: { ...lease.metadata, annotations } }),
        undefined,
      );
    }
  });
});
