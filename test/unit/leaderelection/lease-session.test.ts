import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LEASES } from '../../../src/api/builtin.ts';
import type { Lease } from '../../../src/api/builtin.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { electionSettings } from '../../../src/leaderelection/leader-elector-options.ts';
import { LeaseLock } from '../../../src/leaderelection/lease-lock.ts';
import { LeaseSession } from '../../../src/leaderelection/lease-session.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { silentLogger } from '../../../src/util/logger.ts';

test('compares resourceVersions of different length as numbers', () => {
  const clock = new FakeClock();
  const { handler } = new ApiServer({ clock });
  const options = { namespace: 'default', name: 'lock', identity: 'a' };
  const session = new LeaseSession(
    {
      lock: new LeaseLock(new HttpClient({ handler, server: 'https://test', clock }), options),
      clock,
      random: Math.random,
      log: silentLogger,
      onSlowPath: () => undefined,
    },
    electionSettings(options),
  );
  const observe = (resourceVersion: string, holderIdentity: string) => {
    session.observe({ lease: leaseOf(resourceVersion, holderIdentity), isDeleted: false });
    return session.leader;
  };
  assert.equal(observe('9', 'x'), 'x');
  assert.equal(observe('10', 'y'), 'y');
  assert.equal(observe('9', 'x'), 'y', 'an older state');
  assert.equal(observe('100', 'z'), 'z');
  assert.equal(observe('99', 'y'), 'z', 'an older state');
});

function leaseOf(resourceVersion: string, holderIdentity: string): Lease {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: LEASES.kind,
    metadata: {
      namespace: 'default',
      name: 'lock',
      uid: 'u',
      resourceVersion,
      creationTimestamp: '2026-01-01T00:00:00Z',
    },
    spec: { holderIdentity, leaseDurationSeconds: 15 },
  };
}
