import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { isApiError } from '../../src/api/api-error.ts';
import { CONFIG_MAPS, NAMESPACES, NODES, PODS } from '../../src/api/builtin.ts';
import type { Pod } from '../../src/api/builtin.ts';
import type { KubernetesObject, ObjectMeta, OwnerReference } from '../../src/api/object.ts';
import type { ObjectName } from '../../src/api/object-key.ts';
import { Simulation } from '../support/simulation.ts';
import type { TestCluster } from '../support/test-cluster.ts';
import { inTestClusters } from '../support/test-clusters.ts';

/** Tests the controllers of a cluster in the cluster that `create` returns. */
function testIn(where: string, create: () => Promise<TestCluster>): void {
  describe(`A cluster, ${where}`, () => {
    let cluster: TestCluster;

    beforeEach(async () => {
      cluster = await create();
    });
    afterEach(() => cluster.end());

    const at = (name: string): ObjectName => ({ namespace: cluster.namespace, name });

    const configMap = (name: string, metadata: Partial<ObjectMeta> = {}) =>
      cluster.client.create(CONFIG_MAPS, {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { namespace: cluster.namespace, name, ...metadata },
      });

    const ownedBy = (
      owner: KubernetesObject,
      reference: Partial<OwnerReference> = {},
    ): OwnerReference => ({
      apiVersion: owner.apiVersion,
      kind: owner.kind,
      name: owner.metadata.name,
      uid: owner.metadata.uid,
      ...reference,
    });

    const find = async (name: string): Promise<KubernetesObject | undefined> => {
      try {
        return await cluster.client.get(CONFIG_MAPS, at(name));
      } catch (error) {
        if (isApiError(error, 'notFound')) return undefined;
        throw error;
      }
    };

    const untilGone = (...names: string[]) =>
      cluster.until(`${names.join()} gone`, async () => {
        const found = await Promise.all(names.map(find));
        return found.every((object) => object === undefined);
      });

    it('deletes what a deleted object owned, transitively', async () => {
      const owner = await configMap('owner');
      const child = await configMap('child', { ownerReferences: [ownedBy(owner)] });
      await configMap('grandchild', { ownerReferences: [ownedBy(child)] });
      await configMap('bystander');
      await cluster.client.delete(CONFIG_MAPS, at('owner'));
      await untilGone('owner', 'child', 'grandchild');
      assert.ok(await find('bystander'));
    });

    it('keeps an object while one of its owners exists, and removes references to the others', async () => {
      const [first, second] = [await configMap('first'), await configMap('second')];
      await configMap('child', { ownerReferences: [ownedBy(first), ownedBy(second)] });
      await cluster.client.delete(CONFIG_MAPS, at('first'));
      await cluster.until('one owner left', async () => {
        const owners = (await find('child'))?.metadata.ownerReferences;
        return owners?.length === 1 && owners[0]?.uid === second.metadata.uid;
      });
      await cluster.client.delete(CONFIG_MAPS, at('second'));
      await untilGone('child');
    });

    it('identifies an owner by uid: a reference with an unknown or outdated uid does not count', async () => {
      const owner = await configMap('owner');
      await configMap('child', { ownerReferences: [ownedBy(owner, { uid: 'another' })] });
      await configMap('orphan', {
        ownerReferences: [ownedBy(owner, { name: 'missing', uid: 'missing' })],
      });
      await untilGone('child', 'orphan');
      assert.ok(await find('owner'));
    });

    it('delays a foreground deletion until blocking dependents are gone', async () => {
      const owner = await configMap('owner');
      await configMap('blocking', {
        ownerReferences: [ownedBy(owner, { blockOwnerDeletion: true })],
        finalizers: ['example.com/hold'],
      });
      await configMap('plain', { ownerReferences: [ownedBy(owner)] });
      await cluster.client.delete(CONFIG_MAPS, at('owner'), { propagationPolicy: 'Foreground' });
      await cluster.until('the blocking dependent is terminating', async () => {
        return (await find('blocking'))?.metadata.deletionTimestamp !== undefined;
      });
      assert.deepEqual((await find('owner'))?.metadata.finalizers, ['foregroundDeletion']);
      const body = { metadata: { finalizers: [] } };
      await cluster.client.patch(CONFIG_MAPS, at('blocking'), { type: 'merge', body });
      await untilGone('blocking', 'owner', 'plain');
    });

    it('orphans the dependents before it deletes an owner with the orphan policy', async () => {
      const owner = await configMap('owner');
      await configMap('child', { ownerReferences: [ownedBy(owner)] });
      await cluster.client.delete(CONFIG_MAPS, at('owner'), { propagationPolicy: 'Orphan' });
      await untilGone('owner');
      await cluster.pass(cluster.isVirtual ? 5000 : 500);
      assert.equal((await find('child'))?.metadata.ownerReferences, undefined);
    });

    const aPod = (name: string, spec: Partial<Pod['spec']> = {}) =>
      cluster.client.create(PODS, {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { namespace: cluster.namespace, name },
        spec: { containers: [{ name: 'app', image: 'nginx' }], ...spec },
      });

    it('binds a Pod to the node, assigns an IP address and makes it ready; deletes it gracefully', async () => {
      await aPod('web');
      const pod = () => cluster.client.get(PODS, at('web'));
      await cluster.until('the Pod runs', async () => (await pod()).status?.phase === 'Running');
      const { spec, status } = await pod();
      assert.equal(spec?.nodeName, 'node-1');
      assert.match(status?.podIP ?? '', /^10\.244\./);
      assert.deepEqual(
        status?.conditions?.map(({ type, status: is }) => `${type} ${is}`).toSorted(),
        ['ContainersReady True', 'Initialized True', 'PodScheduled True', 'Ready True'],
      );
      assert.equal(status?.containerStatuses?.[0]?.ready, true);
      await cluster.client.delete(PODS, at('web'));
      await cluster.until('no Pods', async () => (await cluster.pods()).length === 0);
    });

    it('keeps its node ready and without taints, and creates it again', async () => {
      const node = async () => {
        const { items } = await cluster.client.list(NODES, {
          fieldSelector: 'metadata.name=node-1',
        });
        return items[0];
      };
      const ready = async () => {
        const found = await node();
        return found !== undefined && (found.spec?.taints ?? []).length === 0;
      };
      await cluster.until('the node is ready', ready);
      const before = await node();
      await cluster.client.delete(NODES, { name: 'node-1' });
      await cluster.until('another node', async () => {
        return (await ready()) && (await node())?.metadata.uid !== before?.metadata.uid;
      });
    });

    it('deletes all objects of a deleted namespace', async () => {
      const { metadata } = await cluster.client.create(NAMESPACES, {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { generateName: 'going-' },
      });
      const namespace = metadata.name;
      await cluster.client.create(CONFIG_MAPS, {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { namespace, name: 'content' },
      });
      await cluster.client.delete(NAMESPACES, { name: namespace });
      await cluster.until('the namespace is deleted', async () => {
        const { items } = await cluster.client.list(NAMESPACES);
        return !items.some(({ metadata: { name } }) => name === namespace);
      });
      const { items } = await cluster.client.list(CONFIG_MAPS, { namespace });
      assert.deepEqual(items, []);
    });
  });
}

inTestClusters(testIn);

describe('A kubelet with configured delays', () => {
  it('keeps a Pod pending for the startup delay, and terminating for the stop delay', async () => {
    const cluster = new Simulation();
    cluster.startCluster({ kubelet: { startupMs: 5000, terminationMs: 3000 } });
    await cluster.pass(1000);
    await cluster.client.create(PODS, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { namespace: 'default', name: 'slow' },
      spec: { containers: [{ name: 'app', image: 'nginx' }] },
    });
    const phase = async () => (await cluster.pods())[0]?.status?.phase;
    await cluster.pass(4500);
    assert.equal(await phase(), 'Pending');
    await cluster.pass(1000);
    assert.equal(await phase(), 'Running');
    await cluster.client.delete(PODS, { namespace: 'default', name: 'slow' });
    await cluster.pass(2000);
    assert.equal((await cluster.pods()).length, 1, 'the Pod is still terminating');
    await cluster.pass(1500);
    assert.deepEqual(await cluster.pods(), []);
    await cluster.end();
  });
});
