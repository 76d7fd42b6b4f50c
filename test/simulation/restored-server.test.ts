import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { COUNTS } from '../../src/api/generated/count.ts';
import { CONFIG_MAPS, PODS } from '../../src/api/builtin.ts';
import { Deferred } from '../../src/util/deferred.ts';
import type { RequestRecord } from '../../src/apiserver/audit/request-log.ts';
import { Replicas } from '../support/replicas.ts';
import { Simulation } from '../support/simulation.ts';

/** Longest time to detect the restore of etcd after the connection was lost. */
const NOTICED_MS = 10_000;

/** Sends writes that advance the revision of the server and do not affect the daemon. */
async function writeElsewhere(simulation: Simulation, times: number): Promise<void> {
  const { metadata } = await simulation.client.create(CONFIG_MAPS, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: 'default', generateName: 'elsewhere-' },
  });
  for (let at = 1; at < times; at++) {
    await simulation.client.patch(CONFIG_MAPS, metadata, {
      type: 'merge',
      body: { data: { at: `${at}` } },
    });
  }
}

/** Makes the server unavailable for `ms`. */
async function outage(simulation: Simulation, ms: number): Promise<void> {
  const end = simulation.server.faults.beforeRequest(() => 'reset');
  simulation.server.faults.dropWatches();
  await simulation.pass(ms);
  end();
}

describe('A daemon whose API server is restored from a backup', () => {
  let simulation: Simulation;

  beforeEach(async () => {
    simulation = new Simulation();
    simulation.startCluster();
    await simulation.installCrd();
    simulation.startDaemon();
    await simulation.applyCount();
    await simulation.untilReady(3);
    await simulation.settle();
  });
  afterEach(() => simulation.end());

  const losses = () =>
    simulation.lines.filter(({ message }) =>
      message.startsWith('The server lost part of its history'),
    );

  /** Asserts that the daemon receives later changes, also those with lower resourceVersions. */
  const assertReceivesChanges = async () => {
    await simulation.client.delete(PODS, simulation.podAt(0));
    await simulation.untilReady((await simulation.count()).spec?.count ?? 0);
    await simulation.patchCount({ count: 1 });
    await simulation.untilReady(1);
    await simulation.settle();
    assert.deepEqual(simulation.errors(), []);
  };

  it('detects that resourceVersions went back, logs the differences, and syncs the restored state', async () => {
    const snapshot = simulation.server.faults.snapshot();
    await simulation.patchCount({ count: 5 });
    await simulation.untilReady(5);
    await writeElsewhere(simulation, 200);
    await simulation.settle();
    simulation.server.faults.restore(snapshot);
    await simulation.pass(NOTICED_MS);
    const pods = losses().find(({ fields }) => fields['resource'] === 'pods');
    assert.ok(pods, 'one line for each cache');
    const { added, changed, removed } = pods.fields;
    assert.deepEqual([added, changed, removed], [0, 0, 2]);
    await simulation.untilReady(3);
    await assertReceivesChanges();
  });

  it('detects the restore after an outage, although other writes have passed its resourceVersions', async () => {
    const snapshot = simulation.server.faults.snapshot();
    await simulation.patchCount({ count: 5 });
    await simulation.untilReady(5);
    await simulation.settle();
    simulation.server.faults.restore(snapshot);
    await outage(simulation, 5000);
    await writeElsewhere(simulation, 200);
    await simulation.pass(30_000);
    await simulation.untilReady(3);
    await assertReceivesChanges();
  });

  it('syncs an object whose state after the restore has the resourceVersion of a lost state', async () => {
    const snapshot = simulation.server.faults.snapshot();
    const change = (body: object) =>
      simulation.client.patch(COUNTS, simulation.at, { type: 'merge', body });
    const lost = await change({ metadata: { annotations: { note: 'lost by the restore' } } });
    await simulation.settle();
    const end = simulation.server.faults.beforeRequest(({ method }) =>
      method === 'GET' ? 'reset' : undefined,
    );
    simulation.server.faults.restore(snapshot);
    const next = await change({ spec: { count: 5 } });
    assert.equal(next.metadata.resourceVersion, lost.metadata.resourceVersion);
    await simulation.pass(5000);
    end();
    await simulation.untilReady(5);
    await assertReceivesChanges();
  });

  for (const { absentMs, withinMs } of [
    { absentMs: 0, withinMs: 310_000 },
    { absentMs: 3000, withinMs: 30_000 },
  ]) {
    it(`waits at most ${withinMs} ms for a deletion that the server has lost, after an outage of ${absentMs} ms`, async () => {
      const snapshot = simulation.server.faults.snapshot();
      // The caches do not receive the deletion: the restore comes first and re-creates the Pod.
      const isDeletion = ({ info }: RequestRecord) =>
        info?.verb === 'delete' && info.resource === 'pods';
      let isDown = false;
      simulation.server.faults.beforeRequest((request) => {
        if (isDeletion(request) && !isDown) {
          isDown = true;
          simulation.server.faults.dropWatches();
        }
        return isDown && request.method === 'GET' ? 'reset' : undefined;
      });
      const restored = new Deferred();
      simulation.server.faults.afterRequest((request) => {
        if (!isDeletion(request)) return;
        simulation.server.faults.clear();
        simulation.server.faults.restore(snapshot);
        if (absentMs > 0) simulation.server.faults.beforeRequest(() => 'reset');
        restored.resolve();
      });
      await simulation.patchCount({ count: 2 });
      await restored.promise;
      await simulation.pass(absentMs);
      simulation.server.faults.clear();
      await simulation.pass(NOTICED_MS);
      assert.equal((await simulation.count()).spec.count, 3, 'the server was restored');
      await simulation.patchCount({ count: 2 });
      await simulation.until('2 Pods', async () => (await simulation.pods()).length === 2, {
        withinMs,
        stepMs: 1000,
      });
    });
  }

  it('lists all resources again when one of them shows that the history is lost', async () => {
    for (let at = 0; at < 200; at++) {
      await simulation.client.patch(PODS, simulation.podAt(0), {
        type: 'merge',
        body: { metadata: { annotations: { at: `${at}` } } },
      });
    }
    await simulation.pass(100);
    // The watch of Counts resumes after new writes have passed its resourceVersion, that of Pods does not.
    simulation.server.faults.delayNext(
      ({ info }) => info?.resource === 'counts' && ['list', 'watch'].includes(info.verb),
      1000,
    );
    simulation.server.faults.wipe();
    await simulation.installCrd();
    await simulation.applyCount({ count: 2 });
    await writeElsewhere(simulation, 100);
    await simulation.pass(NOTICED_MS);
    assert.ok(losses().some(({ fields }) => fields['resource'] === 'pods'));
    await simulation.untilReady(2);
    simulation.lines.length = 0;
    await assertReceivesChanges();
  });

  it('starts from an empty state on a server without data', async () => {
    await writeElsewhere(simulation, 200);
    await simulation.settle();
    simulation.server.faults.wipe();
    await simulation.pass(NOTICED_MS);
    // Until the CRD is installed again, the daemon may fail to write a status.
    simulation.lines.length = 0;
    await simulation.installCrd();
    await simulation.applyCount({ count: 2 });
    await simulation.untilReady(2);
    await assertReceivesChanges();
  });
});

describe('Two replicas whose API server is restored from a backup', () => {
  let simulation: Replicas;

  beforeEach(async () => {
    simulation = new Replicas();
    simulation.startCluster();
    await simulation.installCrd();
    await simulation.applyCount();
  });
  afterEach(() => simulation.end());

  for (const [what, happenNext] of [
    ['restored', () => Promise.resolve()],
    [
      'restored, with newer resourceVersions than the caches',
      async () => {
        await outage(simulation, 3000);
        await writeElsewhere(simulation, 300);
      },
    ],
  ] as const) {
    it(`a new leader syncs the state of a server that was ${what}`, async () => {
      const a = simulation.startReplica('a');
      await simulation.pass(100);
      const b = simulation.startReplica('b');
      await simulation.untilReady(3);
      const snapshot = simulation.server.faults.snapshot();
      await simulation.patchCount({ count: 5 });
      await simulation.untilReady(5);
      await writeElsewhere(simulation, 100);
      await simulation.settle();
      a.kill();
      simulation.server.faults.restore(snapshot);
      await happenNext();
      await simulation.until('b leads', async () => b.mayWrite, { withinMs: 40_000 });
      await simulation.untilReady(3);
      await simulation.client.delete(PODS, simulation.podAt(1));
      await simulation.client.patch(COUNTS, simulation.at, {
        type: 'merge',
        body: { spec: { count: 4 } },
      });
      await simulation.untilReady(4);
      assert.equal(b.ending, undefined);
    });
  }
});
