import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { parseTarget, requestInfo } from '../../src/apiserver/request-info.ts';
import { HttpClient } from '../../src/client/http-client.ts';
import type { HttpRequest } from '../../src/util/http.ts';
import { untilAborted } from '../../src/util/abort.ts';
import { KINDS, TheObject } from '../support/kinds.ts';
import { Replicas } from '../support/replicas.ts';
import type { Replica } from '../support/replicas.ts';
import { Simulation } from '../support/simulation.ts';

describe('A daemon that is stopped while a request hangs', () => {
  let world: Simulation;
  let hangs: boolean;
  let stop: () => Promise<void>;

  beforeEach(async () => {
    world = new Simulation();
    world.startCluster();
    await world.installCrd();
    hangs = false;
    const client = new HttpClient({
      server: 'https://simulated',
      // Without a request timeout, the daemon would wait indefinitely.
      requestTimeoutMs: 0,
      handler: async (request) => {
        if (!hangs || !isCreation(request)) return world.server.handler(request);
        await untilAborted(request.signal ?? AbortSignal.abort());
        throw request.signal?.reason;
      },
    });
    stop = world.startDaemon({ gracefulShutdownTimeoutMs: 20_000 }, client);
  });
  afterEach(() => world.end());

  const isCreation = ({ method, path }: HttpRequest) => method === 'POST' && /\/pods\?/.test(path);

  it('aborts the sync early enough for the rest of the shutdown, and reports no failure', async () => {
    await world.applyCount();
    await world.untilReady(3);
    const events = await world.events();
    hangs = true;
    await world.patchCount({ count: 5 });
    await world.pass(500);
    const from = world.elapsedMs();
    await stop();
    assert.ok(world.elapsedMs() - from < 16_000, `${world.elapsedMs() - from} ms`);
    assert.deepEqual(world.errors(), ['Syncs exceeded the drain timeout; aborting them: ']);
    assert.deepEqual(await world.events(), events);
  });
});

/** A write of each controller that can hang, and the change that causes it. */
const WRITES: readonly (readonly [
  controller: string,
  method: 'POST' | 'PATCH' | 'DELETE',
  path: RegExp,
  cause: (object: TheObject) => Promise<unknown>,
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
      const world = new Simulation();
      world.startCluster();
      const object = new TheObject(world, kind);
      await object.install();
      let state: 'idle' | 'armed' | 'hanging' = 'idle';
      const stop = world.startDaemonBehind(
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
        await world.settle();
      }
      state = 'armed';
      await cause(object);
      await world.until('the write hangs', hangs);
      await stop();
      const failed = (await world.events(kind.component)).filter((event) =>
        /Failed|Error|rror /.test(event),
      );
      assert.deepEqual(failed, []);
      assert.deepEqual(world.errors(), ['Syncs exceeded the drain timeout; aborting them: ']);
      const { status } = await object.get();
      assert.ok(!/Failed/.test(JSON.stringify(status ?? {})), 'the status reports no failure');
      await world.end();
    });
  }
});

describe('A leader in the middle of a sync', () => {
  let world: Replicas;
  let leader: Replica;
  /** Requests and ended watches in the order in which the server sees them. */
  let seen: string[];
  /** Lets the server answer the delayed request. */
  let answer: () => void;

  beforeEach(async () => {
    world = new Replicas();
    world.startCluster();
    await world.installCrd();
    seen = [];
    leader = world.startReplica('leader', {
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
    await world.applyCount({ count: 2 });
    await world.untilReady(2);
    await world.settle();
    const held = new Promise<void>((resolve) => (answer = resolve));
    let isHeld = false;
    world.server.faults.beforeRequest(async ({ method, info }) => {
      // Slow event requests, so that the order does not depend on their speed.
      if (method === 'POST' && info?.resource === 'events') await world.sleep(500);
      if (method !== 'POST' || info?.resource !== 'pods') return;
      isHeld = true;
      await held;
    });
    await world.patchCount({ count: 3 });
    await world.until('the sync hangs', async () => isHeld);
    seen = [];
  });
  afterEach(() => {
    answer();
    return world.end();
  });

  const note = ({ method, path, body, signal, longRunning }: HttpRequest) => {
    const info = requestInfo(method, parseTarget(path));
    if (longRunning) {
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

  it('becomes unready at once, completes the running sync and starts no other, flushes events, releases the lease, and ends its watches last', async () => {
    assert.equal(await probe('/readyz'), 200);
    leader.stop();
    await world.pass(100);
    assert.deepEqual([await probe('/readyz'), await probe('/livez')], [500, 200]);
    await world.applyCount({ count: 1 }, 'late');
    await world.pass(3000);
    assert.deepEqual(
      new Set(seen),
      new Set(['update leases holder=leader']),
      'the leader waits for the sync and renews its lease',
    );
    seen = [];
    answer();
    await world.until('the leader has stopped', async () => leader.ending !== undefined);
    assert.equal(leader.ending, 'ended');
    assert.deepEqual(seen, [
      'patch counts status',
      'create events SuccessfulCreate',
      'create events LeaderElection',
      'update leases holder=',
      'a watch ends',
      'a watch ends',
    ]);
    assert.equal(await probe('/livez'), 'closed');
    assert.equal((await world.pods()).length, 3, 'the other Count was not synced');
  });
});
