import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { COUNTS } from '../../src/api/generated/count.ts';
import { PODS } from '../../src/api/builtin.ts';
import type { Pod } from '../../src/api/builtin.ts';
import type { ObjectName } from '../../src/api/object-key.ts';
import type { Draft, KubernetesObject } from '../../src/api/object.ts';
import type { TestCluster } from '../support/test-cluster.ts';
import { inTestClusters } from '../support/test-clusters.ts';

function conditionsOf(count: {
  status?: { conditions?: { type: string; status: string; reason: string }[] };
}) {
  return Object.fromEntries(
    (count.status?.conditions ?? []).map(({ type, status, reason }) => [
      type,
      `${status} ${reason}`,
    ]),
  );
}

function unownedPod({ name, namespace = '' }: ObjectName): Draft<Pod> {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace },
    spec: { containers: [{ name: 'app', image: 'mine' }] },
  };
}

/** Watches the Pods; `end` returns the lowest number of Pods, without terminating ones. */
async function watchLowestPodCount({
  client,
  namespace,
}: TestCluster): Promise<{ end(): Promise<number> }> {
  const { items, resourceVersion } = await client.list(PODS, { namespace });
  const present = new Set(items.map(({ metadata }) => metadata.uid));
  let fewest = present.size;
  const stop = new AbortController();
  const stream = await client.watch(PODS, { namespace, resourceVersion, signal: stop.signal });
  const follow = async () => {
    for await (const event of stream) {
      if (event.type === 'bookmark' || event.type === 'error') continue;
      const { uid, deletionTimestamp } = event.object.metadata;
      if (event.type === 'deleted' || deletionTimestamp) present.delete(uid);
      else present.add(uid);
      fewest = Math.min(fewest, present.size);
    }
  };
  const following = follow();
  return {
    async end() {
      stop.abort();
      await following;
      return fewest;
    },
  };
}

/** Tests Counts in the cluster that `create` returns for each test. */
function testIn(where: string, create: () => Promise<TestCluster>): void {
  describe(`A Count and the daemon, ${where}`, () => {
    let cluster: TestCluster;
    let stopDaemon: () => Promise<void>;

    beforeEach(async () => {
      cluster = await create();
      await cluster.installCrd();
      stopDaemon = cluster.startDaemon();
    });
    afterEach(() => cluster.end());

    it('runs its Pods, reports them in its status, and records one Synced event', async () => {
      await cluster.applyCount();
      await cluster.untilReady(3);
      await cluster.settle();
      assert.deepEqual(await cluster.podNames(), ['test-count-0', 'test-count-1', 'test-count-2']);
      const count = await cluster.count();
      for (const pod of await cluster.pods()) {
        assert.equal(pod.metadata.ownerReferences?.[0]?.uid, count.metadata.uid);
        assert.equal(pod.spec?.containers[0]?.image, 'nginx');
      }
      const { conditions, selector, ...numbers } = count.status ?? {};
      assert.deepEqual(numbers, {
        healthy: true,
        observedGeneration: 1,
        replicas: 3,
        readyReplicas: 3,
      });
      assert.equal(conditionsOf(count)['Ready'], 'True PodsReady');
      assert.match(selector ?? '', /instance=test-count/);
      assert.deepEqual(await cluster.events(), [
        'SuccessfulCreate Created pod: test-count-0',
        'SuccessfulCreate Created pod: test-count-1',
        'SuccessfulCreate Created pod: test-count-2',
        'Synced Count synced successfully',
      ]);
      assert.deepEqual(cluster.errors(), []);
    });

    it('creates and deletes Pods when scaled through /scale, highest ordinal first', async () => {
      await cluster.applyCount();
      await cluster.untilReady(3);
      const scale = (replicas: number) =>
        cluster.client.patch<KubernetesObject>(
          COUNTS,
          cluster.at,
          { type: 'merge', body: { spec: { replicas } } },
          { subresource: 'scale' },
        );
      await scale(5);
      await cluster.untilReady(5);
      await scale(2);
      await cluster.untilReady(2);
      assert.deepEqual(await cluster.podNames(), ['test-count-0', 'test-count-1']);
      await cluster.settle();
      const events = await cluster.events();
      assert.ok(events.includes('SuccessfulDelete Deleted pod: test-count-4'));
      assert.ok(events.includes('SuccessfulCreate Created pod: test-count-4'));
      assert.deepEqual(cluster.errors(), []);
    });

    it('creates a deleted Pod again under its name', async () => {
      await cluster.applyCount();
      await cluster.untilReady(3);
      const before = await cluster.pod(1);
      await cluster.client.delete(PODS, cluster.podAt(1));
      await cluster.until('another Pod of the name', async () => {
        const pods = await cluster.pods();
        return pods.some(
          ({ metadata }) =>
            metadata.name === 'test-count-1' && metadata.uid !== before.metadata.uid,
        );
      });
      await cluster.untilReady(3);
    });

    it('replaces a failed Pod', async () => {
      await cluster.applyCount({ count: 1 });
      await cluster.untilReady(1);
      const [pod] = await cluster.pods();
      await cluster.client.patch(
        PODS,
        pod!.metadata,
        { type: 'merge', body: { status: { phase: 'Failed' } } },
        { subresource: 'status' },
      );
      await cluster.until('another Pod', async () =>
        (await cluster.pods()).some(
          ({ metadata, status }) =>
            metadata.uid !== pod?.metadata.uid && status?.phase === 'Running',
        ),
      );
      await cluster.untilReady(1);
    });

    it('replaces the Pods one at a time after an image change, and is Ready when all run the new image', async () => {
      await cluster.applyCount();
      await cluster.untilReady(3);
      const watching = await watchLowestPodCount(cluster);
      await cluster.patchCount({ name: 'nginx:2' });
      await cluster.until('all Pods run the new image', async () => {
        const pods = await cluster.pods();
        return (
          pods.length === 3 && pods.every(({ spec }) => spec?.containers[0]?.image === 'nginx:2')
        );
      });
      await cluster.untilReady(3);
      assert.equal(await watching.end(), 2, 'one Pod was away at a time');
    });

    it('deletes its Pods with the Count, and creates no more', async () => {
      await cluster.applyCount();
      await cluster.untilReady(3);
      await cluster.client.delete(COUNTS, cluster.at);
      await cluster.until('no Pods', async () => (await cluster.pods()).length === 0);
      await cluster.settle();
      assert.deepEqual(await cluster.pods(), []);
      assert.ok(
        cluster.lines.some(
          ({ message, fields }) =>
            message === 'Count was deleted' &&
            fields['count'] === `${cluster.namespace}/test-count`,
        ),
      );
      assert.deepEqual(cluster.errors(), []);
    });

    it('waits for the Pods of a deleted Count with the same name to terminate', async () => {
      await cluster.applyCount();
      await cluster.untilReady(3);
      await cluster.client.delete(COUNTS, cluster.at);
      await cluster.applyCount();
      await cluster.untilReady(3);
      const { metadata } = await cluster.count();
      await cluster.settle();
      for (const pod of await cluster.pods())
        assert.equal(pod.metadata.ownerReferences?.[0]?.uid, metadata.uid);
      assert.ok(!(await cluster.events()).some((event) => event.startsWith('ErrResourceExists')));
    });

    it('keeps an unowned Pod with a name that it needs, reports the collision, and waits', async () => {
      await cluster.client.create(PODS, unownedPod(cluster.podAt(1)));
      const before = await cluster.pod(1);
      await cluster.applyCount();
      const message = 'Resource "test-count-1" already exists and is not managed by Count';
      await cluster.until('the collision is reported', async () =>
        (await cluster.events()).includes(`ErrResourceExists ${message}`),
      );
      // The status is written after the event was recorded.
      await cluster.until(
        'the condition',
        async () => conditionsOf(await cluster.count())['Stalled'] === 'True ErrResourceExists',
      );
      assert.deepEqual(
        await cluster.podNames(),
        ['test-count-0', 'test-count-1', 'test-count-2'],
        'the other Pods are created',
      );
      assert.equal((await cluster.pod(1)).metadata.uid, before.metadata.uid);
      assert.equal((await cluster.pod(1)).metadata.ownerReferences, undefined);

      // Long enough for the longest backoff delay.
      await cluster.pass(cluster.isVirtual ? 300_000 : 2000);
      await cluster.client.delete(PODS, cluster.podAt(1));
      const deletedAt = cluster.elapsedMs();
      await cluster.untilReady(3);
      assert.ok(
        cluster.elapsedMs() - deletedAt < 5000,
        'the deletion triggers the sync, not the backoff',
      );
      assert.deepEqual(conditionsOf(await cluster.count()), { Ready: 'True PodsReady' });
    });

    it('reports a name without room for ordinals as permanently invalid', async () => {
      const name = 'n'.repeat(252);
      await cluster.applyCount({}, name);
      await cluster.until('the condition', async () => {
        const count = await cluster.client.get(COUNTS, { namespace: cluster.namespace, name });
        return conditionsOf(count)['Stalled'] === 'True NameTooLong';
      });
      await cluster.settle();
      const runs = cluster.lines.filter(({ level }) => level === 'error').length;
      await cluster.pass(cluster.isVirtual ? 3_600_000 : 2000);
      assert.equal(
        cluster.lines.filter(({ level }) => level === 'error').length,
        runs,
        'no retry loop',
      );
      assert.deepEqual(await cluster.pods(), []);
    });

    it('writes nothing in steady state, also after resyncs and a restart', async () => {
      await cluster.applyCount();
      await cluster.untilReady(3);
      await cluster.settle();
      const versions = async () => [
        (await cluster.count()).metadata.resourceVersion,
        ...(await cluster.pods()).map(({ metadata }) => metadata.resourceVersion),
      ];
      const before = await versions();
      const events = await cluster.events();
      await stopDaemon();
      cluster.startDaemon({ resyncPeriodMs: 1000 });
      await cluster.pass(3500);
      assert.deepEqual(await versions(), before);
      assert.deepEqual(await cluster.events(), events);
    });
  });
}

inTestClusters(testIn);
