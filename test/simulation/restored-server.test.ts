import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { COUNTS } from '../../src/api/generated/count.ts';
import { PODS } from '../../src/api/builtin.ts';
import { Deferred } from '../../src/util/deferred.ts';
import type { RequestRecord } from '../../src/apiserver/request-log.ts';
import { CONFIG_MAPS } from '../support/config-maps.ts';
import { Replicas } from '../support/replicas.ts';
import { Simulation } from '../support/simulation.ts';

/** Longest time to detect the restore of etcd after the connection was lost. */
const NOTICED_MS = 10_000;

/** Sends writes that advance the revision of the server and do not affect the daemon. */
async function writeElsewhere(world: Simulation, times: number): Promise<void> {
  const { metadata } = await world.client.create(CONFIG_MAPS, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: 'default', generateName: 'elsewhere-' },
  });
  for (let at = 1; at < times; at++) {
    await world.client.patch(CONFIG_MAPS, metadata, {
      type: 'merge',
      body: { data: { at: `${at}` } },
    });
  }
}

/** Makes the server unavailable for `ms`. */
async function outage(world: Simulation, ms: number): Promise<void> {
  const end = world.server.faults.beforeRequest(() => 'reset');
  world.server.faults.dropWatches();
  await world.pass(ms);
  end();
}

describe('A daemon whose API server is restored from a backup', () => {
  let world: Simulation;

  beforeEach(async () => {
    world = new Simulation();
    world.startCluster();
    await world.installCrd();
    world.startDaemon();
    await world.applyCount();
    await world.untilReady(3);
    await world.settle();
  });
  afterEach(() => world.end());

  const losses = () =>
    world.lines.filter(({ message }) => message.startsWith('The server lost part of its history'));

  /** Asserts that the daemon receives later changes, also those with lower resourceVersions. */
  const assertReceivesChanges = async () => {
    await world.client.delete(PODS, world.podAt(0));
    await world.untilReady((await world.count()).spec?.count ?? 0);
    await world.patchCount({ count: 1 });
    await world.untilReady(1);
    await world.settle();
    assert.deepEqual(world.errors(), []);
  };

  it('detects that resourceVersions went back, logs the differences, and syncs the restored state', async () => {
    const snapshot = world.server.faults.snapshot();
    await world.patchCount({ count: 5 });
    await world.untilReady(5);
    await writeElsewhere(world, 200);
    await world.settle();
    world.server.faults.restore(snapshot);
    await world.pass(NOTICED_MS);
    const pods = losses().find(({ fields }) => fields['resource'] === 'pods');
    assert.ok(pods, 'one line for each cache');
    const { added, changed, removed } = pods.fields;
    assert.deepEqual([added, changed, removed], [0, 0, 2]);
    await world.untilReady(3);
    await assertReceivesChanges();
  });

  it('detects the restore after an outage, although other writes have passed its resourceVersions', async () => {
    const snapshot = world.server.faults.snapshot();
    await world.patchCount({ count: 5 });
    await world.untilReady(5);
    await world.settle();
    world.server.faults.restore(snapshot);
    await outage(world, 5000);
    await writeElsewhere(world, 200);
    await world.pass(30_000);
    await world.untilReady(3);
    await assertReceivesChanges();
  });

  for (const { absentMs, withinMs } of [
    { absentMs: 0, withinMs: 310_000 },
    { absentMs: 3000, withinMs: 30_000 },
  ]) {
    it(`waits at most ${withinMs} ms for a deletion that the server has lost, after an outage of ${absentMs} ms`, async () => {
      const snapshot = world.server.faults.snapshot();
      // The caches do not receive the deletion: the restore comes first and re-creates the Pod.
      const isDeletion = ({ info }: RequestRecord) =>
        info?.verb === 'delete' && info.resource === 'pods';
      let isDown = false;
      world.server.faults.beforeRequest((request) => {
        if (isDeletion(request) && !isDown) {
          isDown = true;
          world.server.faults.dropWatches();
        }
        return isDown && request.method === 'GET' ? 'reset' : undefined;
      });
      const restored = new Deferred();
      world.server.faults.afterRequest((request) => {
        if (!isDeletion(request)) return;
        world.server.faults.clear();
        world.server.faults.restore(snapshot);
        if (absentMs > 0) world.server.faults.beforeRequest(() => 'reset');
        restored.resolve();
      });
      await world.patchCount({ count: 2 });
      await restored.promise;
      await world.pass(absentMs);
      world.server.faults.clear();
      await world.pass(NOTICED_MS);
      assert.equal((await world.count()).spec.count, 3, 'the server was restored');
      await world.patchCount({ count: 2 });
      await world.until('2 Pods', async () => (await world.pods()).length === 2, {
        withinMs,
        stepMs: 1000,
      });
    });
  }

  it('starts from an empty state on a server without data', async () => {
    await writeElsewhere(world, 200);
    await world.settle();
    world.server.faults.wipe();
    await world.pass(NOTICED_MS);
    await world.installCrd();
    await world.applyCount({ count: 2 });
    await world.untilReady(2);
    await assertReceivesChanges();
  });
});

describe('Two replicas whose API server is restored from a backup', () => {
  let world: Replicas;

  beforeEach(async () => {
    world = new Replicas();
    world.startCluster();
    await world.installCrd();
    await world.applyCount();
  });
  afterEach(() => world.end());

  for (const [what, happenNext] of [
    ['restored', () => Promise.resolve()],
    [
      'restored, with newer resourceVersions than the caches',
      async () => {
        await outage(world, 3000);
        await writeElsewhere(world, 300);
      },
    ],
  ] as const) {
    it(`a new leader syncs the state of a server that was ${what}`, async () => {
      const a = world.startReplica('a');
      await world.pass(100);
      const b = world.startReplica('b');
      await world.untilReady(3);
      const snapshot = world.server.faults.snapshot();
      await world.patchCount({ count: 5 });
      await world.untilReady(5);
      await writeElsewhere(world, 100);
      await world.settle();
      a.kill();
      world.server.faults.restore(snapshot);
      await happenNext();
      await world.until('b leads', async () => b.mayWrite, { withinMs: 40_000 });
      await world.untilReady(3);
      await world.client.delete(PODS, world.podAt(1));
      await world.client.patch(COUNTS, world.at, { type: 'merge', body: { spec: { count: 4 } } });
      await world.untilReady(4);
      assert.equal(b.ending, undefined);
    });
  }
});
