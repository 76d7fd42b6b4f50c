import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { LEASES } from '../../src/api/builtin.ts';
import { parseTarget, requestInfo } from '../../src/apiserver/request/request-info.ts';
import { HttpClient } from '../../src/client/http-client.ts';
import type { HttpRequest } from '../../src/util/http.ts';
import { untilAborted } from '../../src/util/abort.ts';
import { KINDS, SampleObject } from '../support/kinds.ts';
import { Replicas } from '../support/replicas.ts';
import type { Replica } from '../support/replicas.ts';
import { Simulation } from '../support/simulation.ts';

describe('A daemon that is stopped while a request hangs', () => {
  let simulation: Simulation;
  let hangs: boolean;
  let stop: () => Promise<void>;

  beforeEach(async () => {
    simulation = new Simulation();
    simulation.startCluster();
    await simulation.installCrd();
    hangs = false;
    const client = new HttpClient({
      server: 'https://simulated',
      // Without a request timeout, the daemon would wait indefinitely.
      requestTimeoutMs: 0,
      handler: async (request) => {
        if (!hangs || !isCreation(request)) return simulation.server.handler(request);
        await untilAborted(request.signal ?? AbortSignal.abort());
        throw request.signal?.reason;
      },
    });
    stop = simulation.startDaemon({ gracefulShutdownTimeoutMs: 20_000 }, client);
  });
  afterEach(() => simulation.end());

  const isCreation = ({ method, path }: HttpRequest) => method === 'POST' && /\/pods\?/.test(path);

  it('aborts the sync early enough for the rest of the shutdown, and reports no failure', async () => {
    await simulation.applyCount();
    await simulation.untilReady(3);
    const events = await simulation.events();
    hangs = true;
    await simulation.patchCount({ count: 5 });
    await simulation.pass(500);
    const from = simulation.elapsedMs();
    await stop();
    assert.ok(simulation.elapsedMs() - from < 16_000, `${simulation.elapsedMs() - from} ms`);
    assert.deepEqual(simulation.errors(), ['Syncs exceeded the drain timeout; aborting them: ']);
    assert.deepEqual(await simulation.events(), events);
  });
});

const AT = { namespace: 'default', name: 'crd-controller' };

/** A write of each controller that can hang, and the change that causes it. */
const WRITES: readonly (readonly [
  controller: string,
  method: 'POST' | 'PATCH' | 'DELETE',
  path: RegExp,
  cause: (object: SampleObject) => Promise<unknown>,
])[] = [
  ['count', 'POST', /\/pods\?/, (object) => object.patch({ count: 3 })],
  ['count', 'DELETE', /\/pods\/x-1/, (object) => object.patch({ count: 1 })],
  ['webapp', 'PATCH', /\/deployments\/x\?/, (object) => object.patch({ replicas: 2 })],
  ['webapp', 'DELETE', /\/services\/x/, (object) => object.delete()],
  ['foo', 'POST', /\/deployments\?/, (object) => object.patch({ deploymentName: 'other' })],
  ['foo', 'DELETE', /\/deployments\/x-site/, (object) => object.patch({ deploymentName: 'b' })],
  ['at', 'POST', /\/pods\?/, (object) => object.create()],
];

describe('A daemon that is stopped while a write hangs', () => {
  for (const [controller, method, path, cause] of WRITES) {
    it(`the controller ${controller} reports no failure of its ${method} ${path.source}`, async () => {
      const kind = KINDS.find((one) => one.controller === controller);
      assert.ok(kind);
      const simulation = new Simulation();
      simulation.startCluster();
      const object = new SampleObject(simulation, kind);
      await object.install();
      let state: 'idle' | 'armed' | 'hanging' = 'idle';
      const stop = simulation.startDaemonBehind(
        (handler) => async (request) => {
          if (state === 'idle' || request.method !== method || !path.test(request.path)) {
            return handler(request);
          }
          state = 'hanging';
          await untilAborted(request.signal ?? AbortSignal.abort());
          throw request.signal?.reason;
        },
        { controllers: [controller], gracefulShutdownTimeoutMs: 20_000 },
      );
      const hangs = async () => state === 'hanging';
      if (controller !== 'at') {
        await object.create();
        await object.untilDone();
        await simulation.settle();
      }
      state = 'armed';
      await cause(object);
      await simulation.until('the write hangs', hangs);
      await stop();
      const failed = (await simulation.events(kind.component)).filter((event) =>
        /Failed|Error|rror /.test(event),
      );
      assert.deepEqual(failed, []);
      assert.deepEqual(simulation.errors(), ['Syncs exceeded the drain timeout; aborting them: ']);
      const { status } = await object.get();
      assert.ok(!/Failed/.test(JSON.stringify(status ?? {})), 'the status reports no failure');
      await simulation.end();
    });
  }
});

describe('A leader in the middle of a sync', () => {
  let simulation: Replicas;
  let leader: Replica;
  /** Requests and ended watches in the order in which the server sees them. */
  let seen: string[];
  /** Lets the server answer the delayed request. */
  let answer: () => void;

  beforeEach(async () => {
    simulation = new Replicas();
    simulation.startCluster();
    await simulation.installCrd();
    seen = [];
    leader = simulation.startReplica('leader', {
      config: { healthProbeBindAddress: '127.0.0.1:0' },
      around: (handler) => async (request) => {
        // An event counts when its response is sent, any other request when it arrives.
        const isEvent = request.path.includes('/events');
        if (!isEvent) note(request);
        const response = await handler(request);
        if (isEvent) note(request);
        return response;
      },
    });
    await simulation.applyCount({ count: 2 });
    await simulation.untilReady(2);
    await simulation.settle();
    const held = new Promise<void>((resolve) => (answer = resolve));
    let isHeld = false;
    simulation.server.faults.beforeRequest(async ({ method, info }) => {
      // Slow event requests, so that the order does not depend on their speed.
      if (method === 'POST' && info?.resource === 'events') await simulation.sleep(500);
      if (method !== 'POST' || info?.resource !== 'pods') return;
      isHeld = true;
      await held;
    });
    await simulation.patchCount({ count: 3 });
    await simulation.until('the sync hangs', async () => isHeld);
    seen = [];
  });
  afterEach(() => {
    answer();
    return simulation.end();
  });

  const note = ({ method, path, body, signal, longRunning }: HttpRequest) => {
    const info = requestInfo(method, parseTarget(path));
    if (longRunning) {
      // The watch of the Lease ends with the leadership.
      if (info?.resource === 'leases') return;
      signal?.addEventListener('abort', () => seen.push('a watch ends'), { once: true });
    } else if (info && method !== 'GET') {
      const [, holder = ''] = /"holderIdentity":"([^"]*)"/.exec(String(body)) ?? [];
      const [, reason = ''] = /"reason":"(\w+)"/.exec(String(body)) ?? [];
      const about =
        { events: reason, leases: `holder=${holder}` }[info.resource] ?? info.subresource;
      seen.push([info.verb, info.resource, about ?? ''].join(' ').trim());
    }
  };

  const probe = async (path: string): Promise<number | 'closed'> => {
    try {
      return (await fetch(`http://${leader.address}${path}`)).status;
    } catch {
      return 'closed';
    }
  };

  it('becomes unready at once, completes the running sync and starts no other, releases the lease, flushes events, and ends its watches last', async () => {
    assert.equal(await probe('/readyz'), 200);
    leader.stop();
    await simulation.pass(100);
    assert.deepEqual([await probe('/readyz'), await probe('/livez')], [500, 200]);
    await simulation.applyCount({ count: 1 }, 'late');
    await simulation.pass(3000);
    assert.deepEqual(
      new Set(seen),
      new Set(['update leases holder=leader']),
      'the leader waits for the sync and renews its lease',
    );
    seen = [];
    answer();
    await simulation.until('the leader has stopped', async () => leader.ending !== undefined);
    assert.equal(leader.ending, 'ended');
    assert.deepEqual(seen, [
      'patch counts status',
      'update leases holder=',
      'create events SuccessfulCreate',
      'create events LeaderElection',
      'a watch ends',
      'a watch ends',
    ]);
    assert.equal(await probe('/livez'), 'closed');
    assert.equal((await simulation.pods()).length, 3, 'the other Count was not synced');
  });
});

describe('A leader that is stopped behind a connection with 1 s of latency each way', () => {
  /** Starts the leader with 40 Counts to sync, stops it after `ms`, and returns the result. */
  async function stopAfter(ms: number, { hangs }: { readonly hangs: boolean }) {
    const simulation = new Replicas();
    simulation.startCluster();
    await simulation.installCrd();
    let isStopping = false;
    const leader = simulation.startReplica('leader', {
      config: { gracefulShutdownTimeoutMs: 20_000 },
      around: (handler) => async (request) => {
        if (request.longRunning) return handler(request);
        await simulation.sleep(1000);
        if (isStopping && hangs && request.path.includes('/pods')) {
          await untilAborted(request.signal ?? AbortSignal.abort());
          throw request.signal?.reason;
        }
        const response = await handler(request);
        await simulation.sleep(1000);
        return response;
      },
    });
    await simulation.until('it leads', async () => leader.mayWrite);
    for (let i = 0; i < 40; i++) await simulation.applyCount({ count: 1 }, `count-${i}`);
    await simulation.pass(ms);
    isStopping = true;
    const fromMs = simulation.elapsedMs();
    leader.stop();
    await simulation.until('it has ended', async () => leader.ending !== undefined);
    const { spec } = await simulation.client.get(LEASES, AT);
    const result = {
      ending: leader.ending,
      holder: spec?.holderIdentity,
      pods: (await simulation.pods()).length,
      events: (await simulation.events('count-controller')).length,
      lost: leader.hasLogged('Events were lost during shutdown'),
    };
    assert.ok(simulation.elapsedMs() - fromMs <= 20_000);
    await simulation.end();
    return result;
  }

  for (const hangs of [false, true]) {
    it(`releases its lease and writes all events${hangs ? ' if syncs take all their time' : ''}`, async () => {
      const { pods, events, ...rest } = await stopAfter(14_000, { hangs });
      assert.deepEqual(rest, { ending: 'ended', holder: '', lost: false });
      assert.ok(events > 20 && events >= pods, `${events} events of ${pods} Pods`);
    });
  }
});
