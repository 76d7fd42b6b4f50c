import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { ApiError } from '../../../../src/api/api-error.ts';
import type { Lease } from '../../../../src/api/builtin.ts';
import { ProgressClock } from '../../../../src/cache/progress.ts';
import { LeaseSightings } from '../../../../src/manager/lease-sightings.ts';
import { statusPage } from '../../../../src/manager/serving/status-page.ts';
import type { ShownInformer, StatusPageDeps } from '../../../../src/manager/serving/status-page.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';

const lease = (name: string, holderIdentity?: string): Lease => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { namespace: 'sys', name, uid: '', resourceVersion: '1', creationTimestamp: '' },
  spec: { ...(holderIdentity !== undefined && { holderIdentity }), acquireTime: '2026-01-01' },
});

describe('the page for a live view', () => {
  let clock: FakeClock;
  let pods: ProgressClock;
  let informers: ShownInformer[];

  beforeEach(() => {
    clock = new FakeClock();
    pods = new ProgressClock(clock, 60_000);
    informers = [{ name: 'pods', hasSynced: true, progress: pods, lister: { size: 7 } }];
  });

  const ask = (more: Partial<StatusPageDeps> = {}) => {
    const deps = { clock, version: 'v1', informers: () => informers, ...more };
    const page = statusPage(deps).get('/debug/status') ?? assert.fail();
    return () => JSON.parse(page(new URLSearchParams()).body) as Record<string, unknown>;
  };

  it('tells since when the process runs, and what its informers do', async () => {
    const status = ask();
    pods.listed();
    pods.enter('watching');
    await clock.advance(2500);
    const { now, ...rest } = status();
    assert.equal(now, new Date(clock.now()).toISOString());
    assert.deepEqual(rest, {
      version: 'v1',
      upMs: 2500,
      informers: [
        {
          name: 'pods',
          state: 'watching',
          stateForMs: 2500,
          hasSynced: true,
          inactiveMs: 2500,
          objects: 7,
        },
      ],
    });
  });

  it('tells which informers are stale, fail, or wait for a resource that is not there', async () => {
    const counts = new ProgressClock(clock, 60_000);
    const foos = new ProgressClock(clock, 60_000);
    foos.failed(new ApiError({ kind: 'forbidden', message: 'secret', code: 403 }));
    counts.missing = true;
    informers.push(
      { name: 'counts', hasSynced: false, progress: counts, lister: { size: 0 } },
      { name: 'foos', hasSynced: false, progress: foos, lister: { size: 0 } },
    );
    const status = ask();
    await clock.advance(1);
    const states = () =>
      (status()['informers'] as { state: string; error?: string }[]).map(({ state, error }) => [
        state,
        error,
      ]);
    assert.deepEqual(states(), [
      ['idle', undefined],
      ['missing', undefined],
      ['idle', 'forbidden'],
    ]);
    await clock.advance(60_001);
    assert.deepEqual(states()[0], ['stale', undefined]);
  });

  it('tells who holds the Leases, as they were last seen, and masks what must not be read', async () => {
    const sightings = new LeaseSightings(clock);
    sightings.saw(lease('shard-10', 'b'));
    sightings.saw(lease('shard-2', 'b'));
    await clock.advance(300);
    sightings.saw(lease('shard-2'));
    await clock.advance(4);
    const status = ask({
      election: { identity: 'hunter2_a', leases: () => sightings.all },
      redact: (text) => text.replace('hunter2', '***'),
    });
    const acquireTime = '2026-01-01';
    assert.deepEqual(status()['election'], {
      identity: '***_a',
      leases: [
        { lease: 'sys/shard-2', holder: '', acquireTime, seenMsAgo: 4 },
        { lease: 'sys/shard-10', holder: 'b', acquireTime, seenMsAgo: 304 },
      ],
    });
  });
});
