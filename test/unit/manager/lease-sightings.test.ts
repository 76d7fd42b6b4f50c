import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Lease } from '../../../src/api/builtin.ts';
import { LeaseSightings } from '../../../src/manager/lease-sightings.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';

function aLease(name: string, spec?: Lease['spec']): Lease {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace: 'shop', uid: name, resourceVersion: '1', creationTimestamp: '' },
    ...(spec ? { spec } : {}),
  };
}

test('shows each Lease as it was last seen, in numerical order, with the time since then', async () => {
  const clock = new FakeClock();
  const sightings = new LeaseSightings(clock);
  sightings.saw(aLease('x-10', { holderIdentity: 'a', acquireTime: 'then' }));
  await clock.advance(1000);
  sightings.saw(aLease('x-2', { holderIdentity: 'b' }));
  sightings.saw(aLease('x-1'));
  await clock.advance(500);
  sightings.saw(aLease('x-2', { holderIdentity: 'c' }));
  assert.deepEqual(sightings.all, [
    { lease: 'shop/x-1', holder: '', acquireTime: undefined, seenMsAgo: 500 },
    { lease: 'shop/x-2', holder: 'c', acquireTime: undefined, seenMsAgo: 0 },
    { lease: 'shop/x-10', holder: 'a', acquireTime: 'then', seenMsAgo: 1500 },
  ]);
});
