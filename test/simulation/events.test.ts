import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { DEPLOYMENTS, EVENTS, PODS, SERVICES } from '../../src/api/builtin.ts';
import { ATS } from '../../src/api/generated/at.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import { FOOS } from '../../src/api/generated/foo.ts';
import { WEB_APPS } from '../../src/api/generated/web-app.ts';
import type { KubernetesObject, NewObject } from '../../src/api/object.ts';
import type { Resource } from '../../src/api/resource.ts';
import type { HttpHandler, HttpRequest } from '../../src/util/http.ts';
import { untilAborted } from '../../src/util/abort.ts';
import { Replicas } from '../support/replicas.ts';
import type { Replica } from '../support/replicas.ts';

interface Kind {
  readonly controller: string;
  readonly resource: Resource;
  readonly owned: readonly Resource[];
  readonly spec: object;
  /** Reason of the event that precedes the status update. */
  readonly reason: string;
}

const KINDS: readonly Kind[] = [
  {
    controller: 'count',
    resource: COUNTS,
    owned: [PODS],
    spec: { name: 'nginx', count: 1 },
    reason: 'Synced',
  },
  {
    controller: 'webapp',
    resource: WEB_APPS,
    owned: [DEPLOYMENTS, SERVICES],
    spec: { version: '1.27', replicas: 1 },
    reason: 'Synced',
  },
  {
    controller: 'foo',
    resource: FOOS,
    owned: [DEPLOYMENTS],
    spec: { deploymentName: 'x-site', replicas: 1 },
    reason: 'Synced',
  },
  {
    controller: 'at',
    resource: ATS,
    owned: [PODS],
    spec: { schedule: '2025-01-01T00:00:00Z', command: 'echo YAY' },
    reason: 'Started',
  },
];

const AT = { namespace: 'default', name: 'x' };

type Subject = KubernetesObject & {
  readonly status?: {
    readonly phase?: string;
    readonly podUID?: string;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
};

/** Leaves the request unanswered until the client aborts it. */
async function hang({ signal }: HttpRequest): Promise<never> {
  await untilAborted(signal ?? new AbortController().signal);
  throw signal?.reason;
}

const writesEvent = (reason: string, { method, path, body }: HttpRequest) =>
  method === 'POST' && path.includes('/events') && String(body).includes(`"reason":"${reason}"`);

for (const kind of KINDS) {
  const { resource, reason } = kind;

  describe(`A ${resource.kind} whose daemon is killed while it records an event`, () => {
    let simulation: Replicas;

    beforeEach(async () => {
      simulation = new Replicas();
      simulation.startCluster();
      await simulation.installCrd(resource, ...kind.owned);
    });
    afterEach(() => simulation.end());

    const start = (identity: string, around?: (handler: HttpHandler) => HttpHandler): Replica =>
      simulation.startReplica(identity, {
        config: { controllers: [kind.controller] },
        ...(around && { around }),
      });
    const create = () => {
      const { group, version } = resource;
      const draft = {
        apiVersion: `${group}/${version}`,
        kind: resource.kind,
        metadata: AT,
        spec: kind.spec,
      };
      return simulation.client.create(resource, draft);
    };
    const status = async () => (await simulation.client.get<Subject>(resource, AT)).status;
    const isDone = async () => {
      const { phase, conditions = [] } = (await status()) ?? {};
      const isReady = conditions.some(({ type, status: is }) => type === 'Ready' && is === 'True');
      return resource === ATS ? phase === 'DONE' : isReady;
    };
    /** Returns the counts of the events with the reason. */
    const counts = async () =>
      (await simulation.client.list(EVENTS)).items
        .filter((event) => event.reason === reason && event.involvedObject.name === AT.name)
        .map(({ count }) => count);

    it('writes no status while the event request hangs; the next daemon emits the event once', async () => {
      let isHanging = false;
      const first = start('first', (handler) => (request) => {
        if (!writesEvent(reason, request)) return handler(request);
        isHanging = true;
        return hang(request);
      });
      await create();
      await simulation.until('the event hangs', async () => isHanging);
      await simulation.pass(5000);
      assert.ok(!(await isDone()));
      assert.equal((await status())?.podUID, undefined);
      first.kill();
      start('second');
      await simulation.until('the object is reconciled', isDone);
      await simulation.settle();
      assert.deepEqual(await counts(), [1]);
    });

    it('does not repeat an event that was written before a status update failed', async () => {
      let hasEvent = false;
      const first = start('first', (handler) => async (request) => {
        if (hasEvent && request.method === 'PATCH' && request.path.includes('/x/status')) {
          first.kill();
          return hang(request);
        }
        const response = await handler(request);
        if (writesEvent(reason, request)) hasEvent = true;
        return response;
      });
      await create();
      await simulation.until('the daemon is killed', async () => first.wasKilled);
      // Another client changes the object before the next daemon sees it.
      const body = { metadata: { labels: { team: 'a' } } };
      await simulation.client.patch(resource, AT, { type: 'merge', body });
      start('second');
      await simulation.until('the object is reconciled', isDone);
      await simulation.settle();
      assert.deepEqual(await counts(), [1]);
    });
  });
}

for (const kind of KINDS.filter(({ resource }) => resource === COUNTS)) {
  it(`counts no event of a ${kind.resource.kind} twice, after whichever write its daemon is killed`, async () => {
    for (let last = 1, wasKilled = true; wasKilled; last++) {
      const simulation = new Replicas();
      simulation.startCluster();
      await simulation.installCrd(kind.resource, ...kind.owned);
      const config = { controllers: [kind.controller] };
      let writes = 0;
      const first = simulation.startReplica('first', {
        config,
        around: (handler) => async (request) => {
          const response = await handler(request);
          if (request.method === 'GET' || ++writes < last) return response;
          first.kill();
          return hang(request);
        },
      });
      const { group, version } = kind.resource;
      await simulation.client.create(kind.resource, {
        apiVersion: `${group}/${version}`,
        kind: kind.resource.kind,
        metadata: AT,
        spec: kind.spec,
      } as NewObject<KubernetesObject>);
      await simulation.pass(5000);
      ({ wasKilled } = first);
      const body = { metadata: { labels: { team: 'a' } } };
      await simulation.client.patch(kind.resource, AT, { type: 'merge', body });
      simulation.startReplica('second', { config });
      const isReady = async () =>
        (await simulation.client.get<Subject>(kind.resource, AT)).status?.conditions?.some(
          ({ type, status }) => type === 'Ready' && status === 'True',
        ) ?? false;
      await simulation.until('the object is ready', isReady);
      await simulation.settle();
      const counts = (await simulation.client.list(EVENTS)).items
        .filter(({ involvedObject }) => involvedObject.name === AT.name)
        .map(({ reason, count }) => `${reason} ${count}`);
      assert.ok(counts.includes(`${kind.reason} 1`), `write ${last}: ${counts.join()}`);
      assert.ok(
        counts.every((each) => each.endsWith(' 1')),
        `write ${last}: ${counts.join()}`,
      );
      await simulation.end();
    }
  });
}

describe('A Count whose owner freezes between the event and the status update', () => {
  const leaderElection = {
    name: 'crd-controller',
    namespace: undefined,
    leaseDurationMs: 15_000,
    renewDeadlineMs: 10_000,
    retryPeriodMs: 2000,
  };

  for (const shards of [undefined, 2]) {
    const how = shards === undefined ? 'of the Lease' : 'of a shard';

    it(`counts the repeated event once when the next owner ${how}`, async () => {
      const simulation = new Replicas();
      simulation.startCluster();
      await simulation.installCrd();
      const config = { leaderElection: { ...leaderElection, ...(shards && { shards }) } };
      let isArmed = false;
      const first = simulation.startReplica('first', {
        config,
        around: (handler) => (request) => {
          const isReady = String(request.body).includes('"reason":"PodsReady"');
          if (!isArmed || !isReady || !request.path.includes('/status')) return handler(request);
          first.kill();
          return hang(request);
        },
      });
      await simulation.applyCount({ count: 1 });
      await simulation.untilReady(1);
      await simulation.settle();
      await simulation.patchCount({ name: 'nginx:2' });
      await simulation.untilReady(1);
      await simulation.settle();
      isArmed = true;
      await simulation.patchCount({ name: 'nginx:3' });
      await simulation.until('the replica is paused', async () => first.wasKilled);
      simulation.startReplica('second', { config });
      await simulation.untilReady(1);
      await simulation.settle();
      const synced = (await simulation.client.list(EVENTS)).items.filter(
        ({ reason }) => reason === 'Synced',
      );
      assert.deepEqual(
        synced.map(({ count }) => count),
        [3],
      );
      await simulation.end();
    });
  }
});

describe('A server that rejects the creation of Pods for some time', () => {
  it('aggregates the failures into one event with a count', async () => {
    const simulation = new Replicas();
    simulation.startCluster();
    await simulation.installCrd();
    const failures = 7;
    const creation = { verb: 'create', resource: 'pods' };
    simulation.server.faults.failNext(creation, 403, { times: failures });
    simulation.startDaemon();
    await simulation.applyCount({ count: 1 });
    await simulation.untilReady(1);
    await simulation.settle();
    const failed = (await simulation.client.list(EVENTS)).items.filter(
      ({ reason }) => reason === 'FailedCreate',
    );
    assert.deepEqual(
      failed.map(({ count }) => count),
      [failures],
    );
    await simulation.end();
  });
});
