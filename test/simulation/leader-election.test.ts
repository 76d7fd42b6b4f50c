import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { LEASES, PODS } from '../../src/api/builtin.ts';
import { Deferred } from '../../src/util/deferred.ts';
import type { HttpHandler } from '../../src/util/http.ts';
import { LEADER_ELECTION, Replicas } from '../support/replicas.ts';
import type { Replica } from '../support/replicas.ts';
import { isAbruptStop } from '../../src/util/runnable.ts';
import { seededRandom } from '../../src/util/seeded-random.ts';

const LEASE_MS = 15_000;
const DEADLINE_MS = 10_000;
/** Retry period. The last renewal of a leader is at most this long before its end. */
const RETRY_MS = 2000;
/** Longest delay between two polls of a lease that is not watched. */
const POLL_MS = 4400;
/** Poll interval of the test for results that take no virtual time. */
const AT_ONCE_MS = 100;

describe('Two replicas with leader election', () => {
  let simulation: Replicas;
  let a: Replica;
  let b: Replica;

  beforeEach(async () => {
    simulation = new Replicas();
    simulation.startCluster();
    await simulation.installCrd();
    a = simulation.startReplica('a');
    await simulation.pass(100);
    b = simulation.startReplica('b', { config: { healthProbeBindAddress: '127.0.0.1:0' } });
    await simulation.applyCount();
    await simulation.untilReady(3);
  });
  afterEach(() => simulation.end());

  const holder = async () =>
    (await simulation.client.get(LEASES, { namespace: 'default', name: 'crd-controller' })).spec
      ?.holderIdentity;
  const untilWorks = async (replica: Replica, withinMs: number) => {
    const fromMs = simulation.elapsedMs();
    await simulation.until(
      `${replica.identity} works`,
      async () => replica.hasLogged('Starting workers'),
      { withinMs },
    );
    return simulation.elapsedMs() - fromMs;
  };
  const leaderEvents = () => simulation.events('crd-controller');

  it('one replica works; the other is ready with synced caches', async () => {
    assert.deepEqual(simulation.writers(), ['a']);
    assert.deepEqual(simulation.writesOf(b), []);
    assert.ok(b.hasLogged('Caches populated'));
    assert.ok(!b.hasLogged('Starting controller'));
    await simulation.until('probes', async () => b.address !== undefined);
    for (const probe of ['readyz', 'livez', 'healthz', 'livez/leaderElection']) {
      const answer = await fetch(`http://${b.address}/${probe}`);
      assert.match(`${answer.status} ${await answer.text()}`, /^200 (ok|\[\+\])/, probe);
    }
    assert.deepEqual(await leaderEvents(), ['LeaderElection a became leader']);
  });

  it('a stopped leader hands over at once', async () => {
    await simulation.patchCount({ count: 5 });
    a.stop();
    await untilWorks(b, AT_ONCE_MS);
    assert.equal(a.ending, 'ended');
    assert.equal(await holder(), 'b');
    const last = simulation.server.requests.recent
      .filter(({ userAgent, method }) => userAgent.startsWith('a') && method !== 'GET')
      .slice(-2)
      .map(({ info }) => `${info?.verb} ${info?.resource}`);
    assert.deepEqual(last, ['create events', 'update leases'], 'an event, then the release');
    await simulation.untilReady(5);
    assert.deepEqual(await leaderEvents(), [
      'LeaderElection a became leader',
      'LeaderElection a stopped leading',
      'LeaderElection b became leader',
    ]);
    assert.deepEqual([...a.errors, ...b.errors], []);
  });

  it('a stopped leader hands over at the next poll if the standby may not watch leases', async () => {
    simulation.server.faults.beforeRequest(({ info }) =>
      info?.verb === 'watch' && info.resource === 'leases' ? 403 : undefined,
    );
    simulation.server.faults.dropWatches();
    await simulation.pass(60_000);
    a.stop();
    await untilWorks(b, POLL_MS + AT_ONCE_MS);
  });

  it('a killed leader is replaced when its lease expires', async () => {
    await simulation.pass(1300);
    a.pause();
    await simulation.patchCount({ count: 5 });
    const tookMs = await untilWorks(b, LEASE_MS + AT_ONCE_MS);
    assert.ok(tookMs > LEASE_MS - RETRY_MS, 'not before the lease has expired');
    await simulation.untilReady(5);
    assert.deepEqual(b.errors, []);
  });

  it('a leader that cannot renew its lease exits and sends no further writes', async () => {
    a.network('without leases');
    await simulation.until('the leader exits', async () => a.ending !== undefined, {
      withinMs: DEADLINE_MS,
    });
    const before = simulation.writesOf(a).length;
    assert.ok(isAbruptStop(a.ending, 'leadershipLost'), String(a.ending));
    await simulation.patchCount({ count: 5 });
    await untilWorks(b, LEASE_MS);
    await simulation.untilReady(5);
    assert.equal(simulation.writesOf(a).length, before);
    assert.deepEqual(await leaderEvents(), [
      'LeaderElection a became leader',
      'LeaderElection b became leader',
    ]);
    assert.match(a.errors.join(), /^Runnable failed: leader election lost: /);
  });

  it('a leader that was paused during a sync sends no writes after it resumes', async () => {
    simulation.server.faults.delayNext({ verb: 'create', resource: 'pods' }, 50, { times: 100 });
    await simulation.patchCount({ count: 30 });
    await simulation.until('the sync is running', async () => (await simulation.pods()).length > 5);
    a.pause();
    await simulation.untilReady(30);
    assert.deepEqual(simulation.writers(), ['b']);
    const before = simulation.writesOf(a).length;
    a.resume();
    await simulation.pass(100);
    assert.ok(isAbruptStop(a.ending, 'leadershipLost'), String(a.ending));
    await simulation.settle();
    assert.equal(simulation.writesOf(a).length, before);
    assert.equal((await simulation.pods()).length, 30);
    assert.deepEqual(simulation.writers(), ['b']);
  });

  it('neither different nor drifting wall clocks affect the election', async () => {
    a.stop();
    await untilWorks(b, AT_ONCE_MS);
    const ahead = simulation.startReplica('ahead', { clock: { offsetMs: 36e5, rate: 1.15 } });
    const behind = simulation.startReplica('behind', { clock: { offsetMs: -864e5, rate: 0.9 } });
    await simulation.pass(60_000);
    assert.deepEqual(simulation.writers(), ['b']);
    for (const [leader, next] of [
      [b, ahead],
      [ahead, behind],
    ] as const) {
      leader.stop();
      const other = next === ahead ? behind : undefined;
      other?.network('down');
      await untilWorks(next, 30_000);
      other?.network('up');
      await simulation.pass(60_000);
      assert.deepEqual(simulation.writers(), [next.identity]);
    }
  });
});

describe('A standby whose Pod cache lags behind', () => {
  it('does not sync before its cache contains all writes of the previous leader', async () => {
    const simulation = new Replicas();
    simulation.startCluster();
    await simulation.installCrd();
    const gate = new Deferred();
    let isLagging = false;
    const lagging =
      (handler: HttpHandler): HttpHandler =>
      async (request) => {
        const response = await handler(request);
        const isInformers =
          /\/pods\?.*watch=true/.test(request.path) && !request.path.includes('timeoutSeconds=3&');
        if (!isInformers) return response;
        const held = async function* () {
          for await (const chunk of response.body) {
            if (isLagging) await gate.promise;
            yield chunk;
          }
        };
        return { ...response, body: held() };
      };
    const a = simulation.startReplica('a');
    await simulation.pass(100);
    const b = simulation.startReplica('b', { around: lagging });
    await simulation.pass(1000);
    isLagging = true;
    await simulation.applyCount();
    await simulation.untilReady(3);
    a.pause();
    await simulation.pass(45_000);
    assert.deepEqual(simulation.writers(), ['b']);
    assert.ok(!b.hasLogged('Starting controller'), 'the standby leads and waits for its cache');
    assert.deepEqual(simulation.writesOf(b), []);
    gate.resolve();
    await simulation.pass(1000);
    assert.ok(b.hasLogged('Starting workers'));
    await simulation.settle();
    assert.deepEqual(simulation.writesOf(b), [], 'all work was done before');
    await simulation.end();
  });
});

describe('Replicas that step down when they lose the lease', () => {
  let simulation: Replicas;
  const stepDown = { leaderElection: { ...LEADER_ELECTION, stepDown: true } };
  const start = (identity: string) => simulation.startReplica(identity, { config: stepDown });
  const standsBy = (replica: Replica) =>
    simulation.until(`${replica.identity} stands by`, async () =>
      replica.hasLogged('Stopped the controllers; standing by'),
    );
  const leads = (replica: Replica) =>
    simulation.until(
      `${replica.identity} leads`,
      async () => simulation.writers().join() === replica.identity,
      { withinMs: LEASE_MS + POLL_MS },
    );

  beforeEach(async () => {
    simulation = new Replicas();
    simulation.startCluster();
    await simulation.installCrd();
    simulation.server.faults.beforeRequest(({ method, info, userAgent }) => {
      const isWrite = method !== 'GET' && info?.resource === 'pods';
      const isOwn = simulation.replicas.some(({ identity }) => identity === userAgent);
      if (isWrite && isOwn) assert.deepEqual(simulation.writers(), [userAgent]);
      return undefined;
    });
  });
  afterEach(() => simulation.end());

  it('alternate without a restart, and each reconciles what changed meanwhile', async () => {
    const a = start('a');
    await simulation.pass(100);
    const b = start('b');
    await simulation.applyCount({ count: 3 });
    await simulation.untilReady(3);
    for (const [leader, next, count] of [
      [a, b, 5],
      [b, a, 2],
    ] as const) {
      leader.network('without leases');
      await standsBy(leader);
      await leads(next);
      await simulation.patchCount({ count });
      await simulation.untilReady(count);
      leader.network('up');
      await simulation.pass(LEASE_MS);
      assert.deepEqual(simulation.writers(), [next.identity]);
    }
    assert.deepEqual([a.ending, b.ending], [undefined, undefined]);
    const listed = simulation.server.requests.recent.filter(
      ({ info, path, userAgent }) =>
        info?.resource === 'pods' && userAgent !== 'cluster' && path.includes('sendInitialEvents'),
    );
    assert.equal(listed.length, 2, 'the informers keep running');
    a.stop();
    await leads(b);
    assert.equal(a.ending, 'ended');
  });

  it('lead again after an outage, and lose neither created nor deleted objects of that time', async () => {
    const a = start('a');
    await simulation.applyCount({ count: 2 });
    await simulation.untilReady(2);
    a.network('down');
    await standsBy(a);
    await simulation.applyCount({ count: 1 }, 'created-meanwhile');
    const before = simulation.writesOf(a).length;
    await simulation.pass(60_000);
    assert.equal(simulation.writesOf(a).length, before);
    await simulation.client.delete(PODS, {
      namespace: simulation.namespace,
      name: `${simulation.at.name}-0`,
    });
    a.network('up');
    await leads(a);
    await simulation.until('all Pods', async () => (await simulation.podNames()).length === 3);
    assert.equal(a.ending, undefined);
  });

  it('send no write of a sync that the loss of the lease interrupted', async () => {
    const a = start('a');
    await simulation.applyCount({ count: 1 });
    await simulation.untilReady(1);
    // Longer than the lease lasts: the creations are in flight when it is lost.
    simulation.server.faults.delayNext({ verb: 'create', resource: 'pods' }, 12_000, { times: 2 });
    await simulation.patchCount({ count: 10 });
    await simulation.pass(100);
    a.network('without leases');
    await standsBy(a);
    const before = simulation.writesOf(a).length;
    await simulation.pass(20_000);
    assert.equal(simulation.writesOf(a).length, before);
    a.network('up');
    await leads(a);
    await simulation.untilReady(10);
    assert.equal((await simulation.pods()).length, 10);
  });

  it('keep leading if renewals are slow but in time, and step down if they are too slow', async () => {
    const a = start('a');
    await simulation.applyCount({ count: 1 });
    await simulation.untilReady(1);
    const slow = (ms: number, times: number) =>
      simulation.server.faults.delayNext({ verb: 'update', resource: 'leases' }, ms, { times });
    slow(2500, 8);
    await simulation.pass(40_000);
    assert.ok(!a.hasLogged('Stopped the controllers; standing by'));
    slow(6000, 3);
    await standsBy(a);
    await leads(a);
    await simulation.patchCount({ count: 2 });
    await simulation.untilReady(2);
  });
});

describe('Three replicas under random disruptions', () => {
  const DISRUPTIONS = [
    'stop',
    'kill',
    'pause',
    'resume',
    'no leases',
    'network down',
    'network up',
  ] as const;

  for (const [seed, stepDown] of [
    [1, false],
    [2, true],
  ] as const) {
    const how = stepDown ? ', stepping down' : '';
    it(`has at most one writer at a time and loses no work (seed ${seed}${how})`, async () => {
      const simulation = new Replicas(seed);
      const random = seededRandom(seed);
      const pick = <T>(from: readonly T[]): T | undefined =>
        from[Math.floor(random() * from.length)];
      simulation.startCluster();
      await simulation.installCrd();
      let started = 0;
      const config = { leaderElection: { ...LEADER_ELECTION, stepDown } };
      const start = () => simulation.startReplica(`replica-${started++}`, { config });
      const alive = () =>
        simulation.replicas.filter(({ ending, wasKilled }) => !ending && !wasKilled);
      await simulation.applyCount({ count: 1 });
      let desired = 1;
      for (let round = 0; round < 20; round++) {
        while (alive().length < 3) start();
        const replica = pick(alive());
        switch (pick(DISRUPTIONS)) {
          case 'stop':
            replica?.stop();
            break;
          case 'kill':
            replica?.kill();
            break;
          case 'pause':
            replica?.pause();
            break;
          case 'no leases':
            replica?.network('without leases');
            break;
          case 'network down':
            replica?.network('down');
            break;
          case 'resume':
            for (const each of alive()) each.resume();
            break;
          default:
            for (const each of alive()) each.network('up');
        }
        desired = 1 + Math.floor(random() * 6);
        await simulation.patchCount({ count: desired });
        for (let step = 0; step < 8; step++) {
          await simulation.pass(random() * 1000);
          assert.ok(simulation.writers().length <= 1, simulation.writers().join());
        }
      }
      for (const replica of alive()) {
        replica.resume();
        replica.network('up');
      }
      start();
      await simulation.until('one leads', async () => simulation.writers().length === 1);
      await simulation.untilReady(desired);
      const failed = simulation.replicas.filter(({ ending }) => ending instanceof Error);
      if (stepDown) assert.deepEqual(failed, []);
      await simulation.end();
    });
  }
});
