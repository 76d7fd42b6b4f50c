import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { CUSTOM_RESOURCE_DEFINITIONS, NODES, PODS } from '../../src/api/builtin.ts';
import { COUNTS } from '../../src/api/generated/count.ts';
import type { OwnerReference } from '../../src/api/object.ts';
import { Simulation } from '../support/simulation.ts';
import { countCrd, countDraft } from '../support/test-cluster.ts';

const HOUR_MS = 3_600_000;
const POD = { namespace: 'default', name: 'owned' };

describe('A cluster with a garbage collector', () => {
  let simulation: Simulation;

  beforeEach(() => {
    simulation = new Simulation();
  });
  afterEach(() => simulation.end());

  const createNode = (name: string) =>
    simulation.client.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name } });
  const ownedBy = (uid: string, name: string): OwnerReference => ({
    apiVersion: 'v1',
    kind: 'Node',
    name,
    uid,
  });
  const createOwned = (...ownerReferences: OwnerReference[]) =>
    simulation.client.create(PODS, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { ...POD, ownerReferences },
      spec: { containers: [{ name: 'app', image: 'nginx' }] },
    });
  const owners = async () => {
    const [pod] = await simulation.pods();
    return pod?.metadata.ownerReferences?.map(({ name }) => name);
  };
  /** Starts a cluster without kubelets, so that an unscheduled Pod is deleted at once. */
  const startCluster = () =>
    simulation.startCluster({ controllers: ['garbage-collector', 'namespace', 'events'] });

  /**
   * Creates a Count with Pods. Returns functions that stop the cluster and that serve or unserve
   * Counts.
   */
  const countWithPods = async () => {
    await simulation.installCrd();
    const stopCluster = simulation.startCluster();
    const stop = simulation.startDaemon();
    await simulation.applyCount({ count: 2 });
    await simulation.untilReady(2);
    await simulation.settle();
    await stop();
    const serve = (isServed: boolean) => {
      const [version] = countCrd().spec.versions;
      assert.ok(version);
      const body = { spec: { versions: [{ ...version, served: isServed }] } };
      const at = { name: 'counts.demo.mark8s.io' };
      return simulation.client.patch(CUSTOM_RESOURCE_DEFINITIONS, at, { type: 'merge', body });
    };
    return { stopCluster, serve };
  };
  const uids = async () => (await simulation.pods()).map(({ metadata }) => metadata.uid);

  for (const isRestarted of [false, true]) {
    const when = isRestarted ? 'starts' : 'runs';

    it(`deletes no owned object while the kind of its owner is not served and the collector ${when}`, async () => {
      const { stopCluster, serve } = await countWithPods();
      const before = await uids();
      if (isRestarted) await stopCluster();
      await serve(false);
      if (isRestarted) simulation.startCluster();
      else simulation.server.faults.dropWatches();
      await simulation.pass(HOUR_MS / 4);
      assert.deepEqual(await uids(), before);
      // The collector continues with other kinds.
      const { metadata } = await createNode('machine');
      await simulation.client.delete(NODES, { name: 'machine' });
      await createOwned(ownedBy(metadata.uid, 'machine'));
      await simulation.pass(120_000);
      assert.deepEqual(await uids(), before);
      await serve(true);
      await simulation.pass(HOUR_MS / 4);
      assert.deepEqual(await uids(), before);
      await simulation.client.delete(COUNTS, simulation.at);
      const isGone = async () => (await simulation.pods()).length === 0;
      await simulation.until('its Pods are gone', isGone, { withinMs: 10 * 60_000 });
    });
  }

  it('deletes the Pods of a Count whose CRD serves another version than at the start of the collector', async () => {
    await simulation.installCrd();
    startCluster();
    await simulation.pass(1000);
    const crd = { name: 'counts.demo.mark8s.io' };
    const [v1] = countCrd().spec.versions;
    assert.ok(v1);
    const rename = (...names: string[]) =>
      simulation.client.patch(CUSTOM_RESOURCE_DEFINITIONS, crd, {
        type: 'merge',
        body: {
          spec: {
            versions: names.map((name, at) =>
              Object.assign(structuredClone(v1), { name, storage: at === 0 }),
            ),
          },
        },
      });
    await rename('v2', 'v1');
    await simulation.client.patch(
      CUSTOM_RESOURCE_DEFINITIONS,
      crd,
      { type: 'merge', body: { status: { storedVersions: ['v2'] } } },
      { subresource: 'status' },
    );
    await rename('v2');
    await simulation.pass(1000);
    const { group, kind } = COUNTS;
    const { metadata } = await simulation.client.create(
      { ...COUNTS, version: 'v2' },
      { ...countDraft('default'), apiVersion: `${group}/v2` },
    );
    const owner = { apiVersion: `${group}/v2`, kind, name: metadata.name, uid: metadata.uid };
    await createOwned(owner);
    await simulation.pass(1000);
    await simulation.client.delete(CUSTOM_RESOURCE_DEFINITIONS, crd);
    await simulation.pass(10_000);
    assert.deepEqual(await simulation.pods(), []);
  });

  it('keeps an object whose owner was never seen, while the kind of the owner is not served', async () => {
    const { stopCluster, serve } = await countWithPods();
    const before = await uids();
    await stopCluster();
    // The collector knows the kind, but its cache of the kind is empty.
    simulation.server.faults.failNext({ verb: 'list', resource: 'counts' }, 503, {
      times: Infinity,
    });
    simulation.startCluster();
    await simulation.pass(1000);
    await serve(false);
    await simulation.pass(HOUR_MS / 4);
    assert.deepEqual(await uids(), before);
  });

  it('keeps an object as long as its cluster-scoped owner exists', async () => {
    const { metadata } = await createNode('machine');
    await createOwned(ownedBy(metadata.uid, 'machine'));
    startCluster();
    await simulation.pass(HOUR_MS);
    assert.deepEqual(await owners(), ['machine']);
    await simulation.client.delete(NODES, { name: 'machine' });
    await simulation.pass(60_000);
    assert.deepEqual(await simulation.pods(), []);
  });

  it('does not accept an owner with the same name and another uid', async () => {
    const { metadata } = await createNode('machine');
    await simulation.client.delete(NODES, { name: 'machine' });
    await createNode('machine');
    await createOwned(ownedBy(metadata.uid, 'machine'));
    startCluster();
    await simulation.pass(60_000);
    assert.deepEqual(await simulation.pods(), []);
  });

  it('removes the reference to an absent owner, and keeps references that are added concurrently', async () => {
    const [absent, present, late] = await Promise.all(
      ['absent', 'present', 'late'].map(createNode),
    );
    assert.ok(absent && present && late);
    await simulation.client.delete(NODES, { name: 'absent' });
    const references = [
      ownedBy(absent.metadata.uid, 'absent'),
      ownedBy(present.metadata.uid, 'present'),
    ];
    await createOwned(...references);
    let isLate = false;
    simulation.server.faults.beforeRequest(async ({ info, userAgent }) => {
      if (isLate || userAgent !== 'cluster' || info?.verb !== 'patch') return;
      isLate = true;
      const ownerReferences = [...references, ownedBy(late.metadata.uid, 'late')];
      const body = { metadata: { ownerReferences } };
      await simulation.client.patch(PODS, POD, { type: 'merge', body });
    });
    startCluster();
    await simulation.pass(60_000);
    assert.deepEqual(await owners(), ['present', 'late']);
  });
});
