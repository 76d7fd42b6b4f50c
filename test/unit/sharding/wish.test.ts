import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Lease } from '../../../src/api/builtin.ts';
import { claimed, released } from '../../../src/leaderelection/election.ts';
import { askedBy, asking } from '../../../src/sharding/wish.ts';

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
  spec: claimed({ holderIdentity: 'z', leaseTransitions: 4 }, claim('a')),
};

describe('the wish for a lease', () => {
  const asked = asking(lease, 'b');
  const passedTo = (identity: string) => ({
    ...asked,
    spec: claimed(asked.spec, claim(identity)),
  });

  it('is read by its holder, and stands beside other annotations', () => {
    assert.equal(askedBy(lease), undefined);
    assert.equal(askedBy(asked), 'b');
    assert.equal(asked.metadata.annotations?.['other'], 'kept');
  });

  it('stands while the lease is renewed, and after it was given back', () => {
    assert.equal(askedBy(passedTo('a')), 'b');
    assert.equal(askedBy({ ...asked, spec: released(asked.spec ?? {}, 0) }), 'b');
  });

  it('is over once another holds the lease, whoever that is', () => {
    for (const next of ['b', 'c']) assert.equal(askedBy(passedTo(next)), undefined);
    const again = passedTo('b');
    assert.equal(askedBy({ ...again, spec: released(again.spec, 0) }), undefined);
  });

  it('that nobody could have written is none', () => {
    for (const value of ['', 'b', '5', '5 ', 'x b', '6 b']) {
      const isWish = (key: string) => key !== 'other';
      const name = Object.keys(asked.metadata.annotations ?? {}).find(isWish) ?? '';
      const annotations = { [name]: value };
      assert.equal(askedBy({ ...lease, metadata: { ...lease.metadata, annotations } }), undefined);
    }
  });
});
