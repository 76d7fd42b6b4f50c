import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { beforeEach, describe, it } from 'node:test';
import { LEASES } from '../../../src/api/builtin.ts';
import { microTimestamp } from '../../../src/api/conditions.ts';
import { LeaderElector } from '../../../src/leaderelection/leader-elector.ts';
import type { LeaderElectorOptions } from '../../../src/leaderelection/leader-elector.ts';
import type { LeaseClient } from '../../../src/leaderelection/lease-lock.ts';
import { leaderElectionMetrics } from '../../../src/metrics/leader-election-metrics.ts';
import { createRegistry, expose } from '../../../src/metrics/registry.ts';
import { AbruptStop, isAbruptStop } from '../../../src/util/runnable.ts';
import { Deferred } from '../../../src/util/deferred.ts';
import { settle } from '../../../src/util/fake-clock.ts';
import type { HttpHandler } from '../../../src/util/http.ts';
import { silentLogger } from '../../../src/util/logger.ts';
import { untilAborted } from '../../../src/util/abort.ts';
import { AT, Candidates } from './candidates.ts';
import type { Candidate } from './candidates.ts';

let candidates: Candidates;
describe('LeaderElector', () => {
  beforeEach(() => {
    candidates = new Candidates();
  });

  const heldSpec = {
    holderIdentity: 'x',
    leaseDurationSeconds: 15,
    acquireTime: '2026-01-01T00:00:00.000000Z',
    renewTime: '2026-01-01T00:00:00.000000Z',
    leaseTransitions: 3,
  };

  /** A transport that never responds. */
  const hangs: HttpHandler = async ({ signal }) => {
    assert.ok(signal);
    await untilAborted(signal);
    throw signal.reason;
  };

  function withoutWatches(): void {
    candidates.server.faults.beforeRequest(({ info }) =>
      info?.verb === 'watch' ? 403 : undefined,
    );
  }

  /** Delays the events of watches until `until` resolves. */
  function delayingWatches(handler: HttpHandler, until: Promise<void>): HttpHandler {
    return async (request) => {
      const response = await handler(request);
      if (!request.path.includes('watch=true')) return response;
      const held = async function* () {
        for await (const chunk of response.body) {
          await until;
          yield chunk;
        }
      };
      return { ...response, body: held() };
    };
  }

  describe('a candidate', () => {
    // upstream: 87
    it('creates a missing lease and logs the acquisition', async () => {
      const a = await candidates.start('a', { options: { labels: { app: 'demo' } } });
      assert.ok(a.leads);
      const { spec, metadata } = await candidates.lease();
      assert.deepEqual(spec, {
        holderIdentity: 'a',
        leaseDurationSeconds: 15,
        acquireTime: '2026-01-01T00:00:00.000000Z',
        renewTime: '2026-01-01T00:00:00.000000Z',
        leaseTransitions: 0,
      });
      assert.deepEqual(metadata.labels, { app: 'demo' });
      assert.deepEqual(a.events, ['Lease lock LeaderElection: a became leader']);
      assert.deepEqual(a.lines(), [
        'Attempting to acquire leader lease...',
        'Successfully acquired lease',
      ]);
    });

    // upstream: 87b
    it('waits for the lease duration before it acquires a lease that is not renewed, whatever its timestamps', async () => {
      await candidates.create({ ...heldSpec, renewTime: '1999-01-01T00:00:00.000000Z' });
      const a = await candidates.start('a');
      candidates.clock.jump(24 * 3_600_000);
      await candidates.clock.advance(14_999);
      assert.equal(await candidates.holder(), 'x');
      await candidates.clock.advance(1);
      assert.ok(a.leads);
      assert.equal((await candidates.spec()).leaseTransitions, 4);
      assert.equal(a.elector.leader, 'a');
    });

    // upstream: 87c
    it('does not acquire a lease that is renewed rarely', async () => {
      await candidates.create(heldSpec);
      const a = await candidates.start('a');
      for (let round = 0; round < 8; round++) {
        await candidates.clock.advance(12_000);
        await candidates.write({ ...heldSpec, renewTime: microTimestamp(candidates.clock.now()) });
      }
      assert.equal(await candidates.holder(), 'x');
      assert.deepEqual(a.events, []);
    });

    // upstream: 87b
    it('uses the duration in the lease, not its own', async () => {
      await candidates.create({ ...heldSpec, leaseDurationSeconds: 60 });
      const a = await candidates.start('a');
      await candidates.clock.advance(59_999);
      assert.ok(!a.leads);
      await candidates.clock.advance(1);
      assert.ok(a.leads);
    });

    // upstream: 87a
    it('acquires a released, never created or never held lease at once', async () => {
      await candidates.create(heldSpec);
      const a = await candidates.start('a');
      await candidates.clock.advance(1000);
      await candidates.write({ ...heldSpec, holderIdentity: '', leaseDurationSeconds: 1 });
      await settle();
      assert.ok(a.leads);
      assert.deepEqual(a.trace, ['get', 'get', 'update']);

      candidates = new Candidates();
      const b = await candidates.start('b');
      assert.ok(b.leads);

      candidates = new Candidates();
      await candidates.create();
      const c = await candidates.start('c');
      assert.ok(c.leads);
      assert.equal((await candidates.spec()).leaseTransitions, 1);
      assert.deepEqual(c.trace, ['get', 'update'], 'no holder to watch');
    });

    const changes: readonly (readonly [string, (all: Candidates) => Promise<unknown>])[] = [
      ['deleted', ({ client }) => client.delete(LEASES, AT)],
      ['emptied', (all) => all.write({ ...heldSpec, holderIdentity: '' })],
      ['wiped', (all) => all.write(undefined)],
      ['overwritten', (all) => all.write({ holderIdentity: 'y', leaseDurationSeconds: 1 })],
    ];
    for (const [what, change] of changes) {
      for (const mayWatch of [true, false]) {
        it(`waits for the lease duration after a lease was ${what}, ${mayWatch ? 'with' : 'without'} a watch`, async () => {
          if (!mayWatch) withoutWatches();
          await candidates.create(heldSpec);
          const a = await candidates.start('a');
          await candidates.clock.advance(14_000);
          await candidates.write({ ...heldSpec, leaseTransitions: 4 });
          await change(candidates);
          await candidates.clock.advance(14_999);
          assert.ok(!a.leads);
          await candidates.clock.advance(mayWatch ? 1 : 2001);
          assert.ok(a.leads);
        });
      }
    }

    it('waits for an emptied lease that it has never seen held', async () => {
      await candidates.create({ ...heldSpec, holderIdentity: '' });
      const a = await candidates.start('a');
      await candidates.clock.advance(14_999);
      assert.ok(!a.leads);
      await candidates.clock.advance(1);
      assert.ok(a.leads);
    });

    it('counts from the last renewal if the watch shows the deletion', async () => {
      await candidates.create(heldSpec);
      const a = await candidates.start('a');
      await candidates.clock.advance(10_000);
      await candidates.client.delete(LEASES, AT);
      await candidates.clock.advance(4999);
      assert.ok(!a.leads);
      await candidates.clock.advance(1);
      assert.ok(a.leads);
      assert.ok(a.lines().includes('Lease was deleted'));
    });

    it('counts from the watch event of a renewal, not from the last poll', async () => {
      await candidates.create(heldSpec);
      const a = await candidates.start('a');
      await candidates.clock.advance(6100);
      await candidates.write({ ...heldSpec, renewTime: microTimestamp(candidates.clock.now()) });
      await candidates.clock.advance(14_999);
      assert.ok(!a.leads);
      await candidates.clock.advance(1);
      assert.ok(a.leads);
    });

    it('ignores lease updates that arrive out of order', async () => {
      const late = new Deferred();
      const delayed = (handler: HttpHandler) => delayingWatches(handler, late.promise);
      await candidates.create(heldSpec);
      const a = await candidates.start('a', { around: delayed });
      await candidates.clock.advance(1000);
      await candidates.write({ ...heldSpec, holderIdentity: 'y' });
      await candidates.clock.advance(9000);
      late.resolve();
      await candidates.clock.advance(6999);
      assert.ok(!a.leads);
      assert.equal(a.elector.leader, 'y');
      await candidates.clock.advance(1);
      assert.ok(a.leads, 'fifteen seconds after the look that found y');
      assert.equal(a.lines().filter((line) => line === 'New leader elected').length, 2);
    });

    it('acquires a released lease at its next poll if it may not watch', async () => {
      withoutWatches();
      await candidates.create(heldSpec);
      const a = await candidates.start('a');
      await candidates.write({ ...heldSpec, holderIdentity: '', leaseDurationSeconds: 1 });
      await candidates.clock.advance(1999);
      assert.ok(!a.leads);
      await candidates.clock.advance(1);
      assert.ok(a.leads);
    });

    it('acquires a deferred lease if no other candidate did', async () => {
      await candidates.create(heldSpec);
      const a = await candidates.start('a', { options: { deferMs: () => 700 } });
      await candidates.clock.advance(100);
      await candidates.write({ ...heldSpec, holderIdentity: '', leaseDurationSeconds: 1 });
      await candidates.clock.advance(699);
      assert.ok(!a.leads);
      await candidates.clock.advance(1);
      assert.ok(a.leads);
    });

    it('logs no error if another candidate acquires the lease first', async () => {
      await candidates.create(heldSpec);
      const all = await Promise.all(['a', 'b', 'c'].map((name) => candidates.start(name)));
      await candidates.write({ ...heldSpec, holderIdentity: '', leaseDurationSeconds: 1 });
      await settle();
      assert.equal(all.filter(({ leads }) => leads).length, 1);
      for (const each of all) {
        assert.ok(!each.lines().some((line) => line.startsWith('Could not')), each.lines().join());
      }
    });

    it('detects its own acquisition after a lost response', async () => {
      await candidates.create(heldSpec);
      const a = await candidates.start('a');
      candidates.server.faults.failNext({ verb: 'update', resource: 'leases' }, 'lostResponse');
      const body = { spec: { holderIdentity: '', leaseDurationSeconds: 1 } };
      await candidates.client.patch(LEASES, AT, { type: 'merge', body });
      await settle(20);
      assert.ok(a.leads);
      assert.equal(a.trace.join(' '), 'get get update update');
    });

    it('polls every 2 to 4.4 seconds', async () => {
      await candidates.create({ ...heldSpec, leaseDurationSeconds: 600 });
      const eager = await candidates.start('a', { deps: { random: () => 0 } });
      const patient = await candidates.start('b', { deps: { random: () => 0.999 } });
      await candidates.clock.advance(44_000);
      const looks = ({ trace }: Candidate) => trace.filter((verb) => verb === 'get').length;
      assert.deepEqual([looks(eager), looks(patient)], [23, 11]);
    });

    // upstream: 87
    it('waits if another candidate creates the lease first', async () => {
      const [a, b] = await Promise.all([candidates.start('a'), candidates.start('b')]);
      assert.notEqual(a.leads, b.leads);
      const [leader, other] = a.leads ? [a, b] : [b, a];
      assert.deepEqual(leader.trace, ['get', 'create']);
      assert.deepEqual(other.trace, ['get', 'create']);
      await candidates.clock.advance(2000);
      assert.deepEqual(other.trace, ['get', 'create', 'get']);
      assert.ok(!other.leads);
    });

    // upstream: 87e
    it('logs each new leader once', async () => {
      await candidates.create(heldSpec);
      const a = await candidates.start('a');
      await candidates.clock.advance(8000);
      await candidates.write({ ...heldSpec, holderIdentity: 'y' });
      await candidates.clock.advance(8000);
      assert.equal(a.elector.leader, 'y');
      assert.deepEqual(a.lines(), [
        'Attempting to acquire leader lease...',
        'New leader elected',
        'New leader elected',
      ]);
    });

    it('logs a missing permission once a minute', async () => {
      const forbidden = candidates.server.faults.beforeRequest(() => 403);
      const a = await candidates.start('a');
      await candidates.clock.advance(119_000);
      const complaints = a.lines().filter((line) => line.startsWith('Could not acquire'));
      assert.equal(complaints.length, 2);
      forbidden();
      await candidates.clock.advance(2000);
      assert.ok(a.leads);
    });

    it('sends no request when it is stopped', async () => {
      await candidates.create(heldSpec);
      const a = await candidates.start('a');
      a.stop();
      assert.equal(await a.ending(), 'ended');
      assert.deepEqual(a.trace, ['get']);
      assert.deepEqual(a.events, []);
      assert.equal(candidates.clock.pending, 0);
    });

    it('releases the lease if it is stopped before the server has its acquisition', async () => {
      candidates.server.faults.delayNext({ verb: 'create', resource: 'leases' }, 1000);
      const a = await candidates.start('a');
      a.stop();
      await candidates.clock.advance(1000);
      assert.equal(await a.ending(), 'ended');
      assert.equal(await candidates.holder(), '');
    });

    it('ends at once if it is stopped while it reads the lease', async () => {
      const a = await candidates.start('a', { around: () => hangs });
      a.stop();
      assert.equal(await a.ending(), 'ended');
    });

    // upstream: 89
    it('releases the lease if it is stopped during its acquisition and may not watch', async () => {
      withoutWatches();
      const arrived = new Deferred();
      candidates.server.faults.afterRequest(async (request) => {
        if (request.method !== 'POST') return undefined;
        await arrived.promise;
        return 'reset';
      });
      const a = await candidates.start('a');
      a.stop();
      arrived.resolve();
      assert.equal(await a.ending(), 'ended');
      assert.equal(await candidates.holder(), '');
    });
  });

  describe('a leader', () => {
    // upstream: 88
    it('renews by one update without a read', async () => {
      const a = await candidates.start('a');
      await candidates.clock.advance(4000);
      assert.deepEqual(a.trace, ['get', 'create', 'update', 'update']);
      const { renewTime, acquireTime, leaseTransitions } = await candidates.spec();
      assert.equal(renewTime, '2026-01-01T00:00:04.000000Z');
      assert.equal(acquireTime, '2026-01-01T00:00:00.000000Z');
      assert.equal(leaseTransitions, 0);
    });

    // upstream: 88, 90b
    it('reads the lease after a failed update, and continues to lead', async () => {
      withoutWatches();
      const a = await candidates.start('a');
      await candidates.clock.advance(2000);
      await candidates.client.patch(LEASES, AT, {
        type: 'merge',
        body: { metadata: { labels: { x: 'y' } } },
      });
      await candidates.clock.advance(4000);
      assert.equal(a.trace.join(' '), 'get create update update get update update');
      assert.ok(a.leads);
      assert.deepEqual((await candidates.lease()).metadata.labels, { x: 'y' }, 'labels are kept');
      assert.deepEqual(a.lines(2).slice(-1), [
        'Could not renew the lease by one update; reading it',
      ]);
    });

    it('keeps leading after a lost response', async () => {
      const a = await candidates.start('a');
      candidates.server.faults.failNext({ verb: 'update', resource: 'leases' }, 'lostResponse');
      await candidates.clock.advance(2000);
      assert.equal(a.trace.join(' '), 'get create update get update');
      assert.ok(a.leads);
    });

    it('creates its lease again after a deletion', async () => {
      const a = await candidates.start('a');
      await candidates.client.delete(LEASES, AT);
      await settle();
      assert.equal(a.trace.join(' '), 'get create get create');
      assert.ok(a.leads);
    });

    it('creates its lease again at its next renewal if it may not watch', async () => {
      withoutWatches();
      const a = await candidates.start('a');
      await candidates.client.delete(LEASES, AT);
      await candidates.clock.advance(2000);
      assert.equal(a.trace.join(' '), 'get create update get create');
      assert.ok(a.leads);
    });

    it('may not write from the deletion of its lease until it has created it again', async () => {
      const a = await candidates.start('a');
      const allow = candidates.server.faults.beforeRequest(({ method }) =>
        method === 'POST' ? 500 : undefined,
      );
      await candidates.client.delete(LEASES, AT);
      await settle();
      assert.deepEqual([a.elector.isLeading, a.elector.mayWrite()], [true, false]);
      allow();
      await candidates.clock.advance(2000);
      assert.ok(a.leads);
    });

    it('may not write if the watch shows a change before the response to the renewal before it', async () => {
      const a = await candidates.start('a');
      candidates.server.faults.afterRequest(async ({ method }) => {
        if (method !== 'PUT') return undefined;
        await candidates.client.delete(LEASES, AT);
        await settle();
        a.around = () => hangs;
        return undefined;
      });
      await candidates.clock.advance(2000);
      assert.ok(!a.leads);
    });

    it('is not affected by jumps of the wall clock', async () => {
      const a = await candidates.start('a');
      const b = await candidates.start('b');
      for (const jumpMs of [3_600_000, -7_200_000, 86_400_000]) {
        candidates.clock.jump(jumpMs);
        await candidates.clock.advance(20_000);
      }
      assert.ok(a.leads);
      assert.ok(!b.leads);
    });

    it('retries until the renew deadline, logs each failure, and then loses the lease', async () => {
      const a = await candidates.start('a');
      await candidates.clock.advance(4000);
      candidates.server.faults.beforeRequest(() => 500);
      await candidates.clock.advance(9999);
      assert.ok(a.leads);
      assert.deepEqual(
        a.lines().slice(2),
        Array.from({ length: 4 }, () => 'Could not renew the lease; trying again'),
      );
      await candidates.clock.advance(1);
      assert.ok(!a.elector.mayWrite());
      const error = await a.ending();
      assert.ok(isAbruptStop(error, 'leadershipLost'));
      assert.equal(
        error.message,
        'leader election lost: lease default/lock: it was not renewed within 10s',
      );
      assert.match(String(error.cause), /500|Internal/);
      assert.deepEqual(
        a.events,
        ['Lease lock LeaderElection: a became leader'],
        'no event of the loss',
      );
      assert.equal(candidates.clock.pending, 0);
    });

    it('makes no attempt in the last millisecond before the renew deadline', async () => {
      const a = await candidates.start('a', { options: { renewDeadlineMs: 8000.5 } });
      await candidates.clock.advance(4000);
      candidates.server.faults.beforeRequest(() => 500);
      await candidates.clock.advance(8001);
      assert.equal(a.lines().slice(2).length, 3);
      assert.ok(isAbruptStop(await a.ending(), 'leadershipLost'));
    });

    it('loses the lease at the deadline while a request hangs', async () => {
      const a = await candidates.start('a');
      a.around = () => hangs;
      await candidates.clock.advance(10_000);
      assert.ok(isAbruptStop(await a.ending(), 'leadershipLost'));
      assert.equal(await candidates.holder(), 'a', 'it is left to expire');
    });

    it('counts the deadline from when a renewal was sent, not from its response', async () => {
      const a = await candidates.start('a');
      candidates.server.faults.delayNext({ verb: 'update', resource: 'leases' }, 4000);
      await candidates.clock.advance(6000);
      assert.equal((await candidates.spec()).renewTime, '2026-01-01T00:00:02.000000Z');
      candidates.server.faults.beforeRequest(() => 500);
      await candidates.clock.advance(5999);
      assert.ok(a.leads);
      await candidates.clock.advance(1);
      assert.ok(!a.elector.mayWrite());
      assert.ok(isAbruptStop(await a.ending(), 'leadershipLost'));
    });

    it('stops at once when another process holds the lease or it was released', async () => {
      const a = await candidates.start('a');
      await candidates.write(heldSpec);
      await settle();
      assert.match(String(await a.ending()), /lost: lease default\/lock: "x" holds it$/);
      assert.equal(await candidates.holder(), 'x');

      candidates = new Candidates();
      const b = await candidates.start('b');
      await candidates.write({ ...heldSpec, holderIdentity: '' });
      await settle();
      assert.match(
        String(await b.ending()),
        /lost: lease default\/lock: it was released by another process$/,
      );
    });

    it('may not write after it has read of another leader, before its own deadline', async () => {
      withoutWatches();
      const a = await candidates.start('a');
      await candidates.write(heldSpec);
      assert.ok(a.leads, 'it has not looked yet');
      await candidates.clock.advance(2000);
      assert.match(String(await a.ending()), /"x" holds it$/);
      const { elector } = a;
      assert.deepEqual(
        [elector.isLeading, elector.mayWrite(), elector.mayWriteEvents()],
        [false, false, false],
      );
    });

    it('may not write after its deadline, before any response', async () => {
      let asleepMs = 0;
      const clock = candidates.clock;
      const paused = {
        now: () => clock.now(),
        monotonic: () => clock.monotonic() + asleepMs,
        after: clock.after.bind(clock),
        sleep: clock.sleep.bind(clock),
      };
      const a = await candidates.start('a', { deps: { clock: paused } });
      asleepMs = 9999;
      assert.ok(a.elector.mayWrite());
      asleepMs = 10_000;
      assert.ok(!a.elector.mayWrite());
      assert.ok(a.elector.isLeading, 'it does not know yet');
      await clock.advance(2000);
      assert.ok(isAbruptStop(await a.ending(), 'leadershipLost'));
      assert.deepEqual(a.trace, ['get', 'create']);
    });
  });

  describe('a leader that is stopped', () => {
    // upstream: 89
    it('records an event, and releases the lease by one update', async () => {
      const a = await candidates.start('a');
      await candidates.clock.advance(12_000);
      assert.deepEqual([a.elector.mayWrite(), a.elector.mayWriteEvents()], [true, true]);
      a.stop();
      await settle();
      assert.equal(await a.ending(), 'ended');
      assert.deepEqual(a.events.slice(1), ['Lease lock LeaderElection: a stopped leading']);
      assert.deepEqual([a.elector.mayWrite(), a.elector.mayWriteEvents()], [false, true]);
      assert.deepEqual(await candidates.spec(), {
        holderIdentity: '',
        leaseDurationSeconds: 1,
        acquireTime: '2026-01-01T00:00:12.000000Z',
        renewTime: '2026-01-01T00:00:12.000000Z',
        leaseTransitions: 0,
      });
      assert.deepEqual(a.trace, ['get', 'create', ...Array.from({ length: 7 }, () => 'update')]);
      assert.equal(candidates.clock.pending, 0);
    });

    it('releases the lease after the renewal in flight', async () => {
      const a = await candidates.start('a');
      candidates.server.faults.delayNext({ verb: 'update', resource: 'leases' }, 1000);
      await candidates.clock.advance(2500);
      a.stop();
      await candidates.clock.advance(500);
      assert.equal(await a.ending(), 'ended');
      assert.equal(await candidates.holder(), '');
      assert.deepEqual(a.trace, ['get', 'create', 'update', 'update']);
    });

    it('aborts the renewal in flight at an abrupt stop', async () => {
      const a = await candidates.start('a');
      a.around = () => hangs;
      await candidates.clock.advance(2500);
      a.stop(new AbruptStop('stopTimeout', 'a sync did not end'));
      assert.equal(await a.ending(), 'ended');
      assert.equal(await candidates.holder(), 'a');
    });

    // upstream: 89a
    it('does not release a lease that another process holds', async () => {
      const a = await candidates.start('a');
      await candidates.write(heldSpec);
      a.stop();
      assert.equal(await a.ending(), 'ended');
      assert.deepEqual(await candidates.spec(), heldSpec);
    });

    // upstream: 89a
    it('does not release a lease that another process acquires between read and release', async () => {
      const a = await candidates.start('a');
      const remove = candidates.server.faults.beforeRequest(async ({ method }) => {
        if (method !== 'PUT') return;
        remove();
        await candidates.write(heldSpec);
      });
      a.stop();
      await candidates.clock.advance(20);
      assert.equal(await a.ending(), 'ended');
      assert.deepEqual(await candidates.spec(), heldSpec);
      assert.equal(a.trace.join(' '), 'get create update get');
    });

    it('reads the lease and releases it if the first attempt failed', async () => {
      const a = await candidates.start('a');
      candidates.server.faults.failNext({ verb: 'update', resource: 'leases' }, 'reset');
      a.stop();
      await settle();
      assert.equal(await a.ending(), 'ended');
      assert.equal(await candidates.holder(), '');
    });

    // upstream: 89b
    it('retries the release after a conflict', async () => {
      const a = await candidates.start('a');
      candidates.server.faults.failNext({ verb: 'update', resource: 'leases' }, 409);
      a.stop();
      await candidates.clock.advance(20);
      assert.equal(await a.ending(), 'ended');
      assert.equal(await candidates.holder(), '');
      assert.equal(a.trace.join(' '), 'get create update get update');
    });

    // upstream: 89b
    it('logs a failed release within the renew deadline', async () => {
      const a = await candidates.start('a');
      a.around = () => hangs;
      a.stop();
      await candidates.clock.advance(10_000);
      assert.equal(await a.ending(), 'ended');
      assert.deepEqual(a.lines().slice(-1), ['Could not release the lease; it will expire']);
    });

    it('stops releasing at the renew deadline, whatever the timeout of its client', async () => {
      let isStopping = false;
      const { client } = candidates;
      const patient: LeaseClient = {
        get: client.get.bind(client),
        watch: client.watch.bind(client),
        create: client.create.bind(client),
        update: async (resource, object, options = {}) => {
          if (!isStopping) return client.update(resource, object, options);
          assert.ok(options.signal);
          await untilAborted(options.signal);
          throw options.signal.reason;
        },
      };
      const a = await candidates.start('a', { deps: { client: patient } });
      isStopping = true;
      a.stop();
      await candidates.clock.advance(9999);
      assert.deepEqual(a.lines().slice(-1), ['Successfully acquired lease']);
      await candidates.clock.advance(1);
      assert.equal(await a.ending(), 'ended');
      assert.deepEqual(a.lines().slice(-1), ['Could not release the lease; it will expire']);
      assert.equal(candidates.clock.pending, 0);
    });

    it('does not release the lease if configured so, or after an abrupt stop', async () => {
      const a = await candidates.start('a', { options: { releaseOnCancel: false } });
      a.stop();
      assert.equal(await a.ending(), 'ended');
      assert.equal(await candidates.holder(), 'a');

      candidates = new Candidates();
      const b = await candidates.start('b');
      b.stop(new AbruptStop('stopTimeout', 'a sync did not end'));
      assert.equal(await b.ending(), 'ended');
      assert.equal(await candidates.holder(), 'b');
      assert.deepEqual(b.events.length, 1);
      assert.ok(!b.elector.mayWrite());
    });

    it('is replaced at once', async () => {
      const a = await candidates.start('a');
      const b = await candidates.start('b');
      await candidates.clock.advance(10_000);
      a.stop();
      assert.equal(await a.ending(), 'ended');
      await settle();
      assert.ok(b.leads);
      assert.equal((await candidates.spec()).leaseTransitions, 1);
    });
  });

  describe('leadership', () => {
    it('can be awaited, and the wait can be aborted', async () => {
      await candidates.create(heldSpec);
      const a = await candidates.start('a');
      const aborted = new AbortController();
      const waits = [
        a.elector.acquired(new AbortController().signal),
        a.elector.acquired(aborted.signal),
      ];
      aborted.abort();
      await candidates.clock.advance(15_000);
      assert.deepEqual(await Promise.all(waits), [true, false]);
      assert.equal(await a.elector.acquired(new AbortController().signal), true);
      assert.equal(await a.elector.acquired(AbortSignal.abort()), false);
    });

    it('removes its abort listeners', async () => {
      await candidates.create(heldSpec);
      const a = await candidates.start('a');
      const { signal } = new AbortController();
      const waiting = a.elector.acquired(signal);
      assert.equal(getEventListeners(signal, 'abort').length, 1);
      await candidates.clock.advance(15_000);
      assert.equal(await waiting, true);
      assert.equal(getEventListeners(signal, 'abort').length, 0);
    });

    // upstream: 90a
    it('is healthy on standby and until its lease is long expired', async () => {
      let asleepMs = 0;
      const { clock } = candidates;
      const paused = {
        now: () => clock.now(),
        monotonic: () => clock.monotonic() + asleepMs,
        after: clock.after.bind(clock),
        sleep: clock.sleep.bind(clock),
      };
      const a = await candidates.start('a', { deps: { clock: paused } });
      const b = await candidates.start('b');
      assert.equal(a.elector.health(), undefined);
      asleepMs = 35_000;
      assert.equal(a.elector.health(), undefined);
      asleepMs = 35_001;
      const unhealthy = 'failed election to renew leadership on lease default/lock';
      assert.equal(a.elector.health(), unhealthy);
      await clock.advance(2000);
      assert.ok(isAbruptStop(await a.ending(), 'leadershipLost'));
      assert.equal(a.elector.health(), unhealthy, 'lost, but the process still runs');
      assert.equal(b.elector.health(), undefined);
    });

    it('is shown by metrics', async () => {
      const registry = createRegistry();
      const metrics = leaderElectionMetrics(registry);
      const series = async () =>
        (await expose(registry)).text.split('\n').filter((line) => line.startsWith('leader'));
      await candidates.create(heldSpec);
      const a = await candidates.start('a', { deps: { metrics } });
      assert.deepEqual(await series(), [
        'leader_election_master_status{name="lock"} 0',
        'leader_election_slowpath_total{name="lock"} 0',
      ]);
      await candidates.clock.advance(15_000);
      candidates.server.faults.failNext({ verb: 'update', resource: 'leases' }, 409);
      await candidates.clock.advance(2000);
      assert.deepEqual(await series(), [
        'leader_election_master_status{name="lock"} 1',
        'leader_election_slowpath_total{name="lock"} 1',
      ]);
      a.stop();
      assert.equal(await a.ending(), 'ended');
      assert.deepEqual((await series())[0], 'leader_election_master_status{name="lock"} 0');
    });
  });

  describe('the constructor throws', () => {
    const invalid: readonly (readonly [Partial<LeaderElectorOptions>, string])[] = [
      [{ identity: '' }, 'identity must not be empty'],
      [{ namespace: '' }, 'namespace must not be empty'],
      [{ name: '' }, 'name must not be empty'],
      [
        { leaseDurationMs: 10_000 },
        'leaseDurationMs must exceed renewDeadlineMs: got 10000 and 10000',
      ],
      [
        { renewDeadlineMs: 2400 },
        'renewDeadlineMs must exceed 1.2 times retryPeriodMs: got 2400 and 2000',
      ],
      [
        { renewDeadlineMs: 2000, jitter: 0 },
        'renewDeadlineMs must exceed 1 times retryPeriodMs: got 2000 and 2000',
      ],
      [
        { leaseDurationMs: Number.NaN },
        'leaseDurationMs must be a positive number of milliseconds: got NaN',
      ],
      [
        { renewDeadlineMs: -1 },
        'renewDeadlineMs must be a positive number of milliseconds: got -1',
      ],
      [{ retryPeriodMs: 0 }, 'retryPeriodMs must be a positive number of milliseconds: got 0'],
      [{ jitter: -1 }, 'jitter must not be negative: got -1'],
      [{ healthToleranceMs: -1 }, 'healthToleranceMs must not be negative: got -1'],
    ];
    for (const [options, message] of invalid) {
      // upstream: 90
      it(`when ${message}`, () => {
        const { client, clock } = candidates;
        assert.throws(
          () =>
            new LeaderElector(
              { client, clock, random: () => 0, log: silentLogger },
              { identity: 'a', ...AT, ...options },
            ),
          { name: 'RangeError', message },
        );
      });
    }
  });
});
