import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { CONFIG_MAPS, PODS, POD_DISRUPTION_BUDGETS } from '../../../../src/api/builtin.ts';
import { controllerOf, controllerReference } from '../../../../src/api/metadata.ts';
import { objectPath } from '../../../../src/api/resource.ts';
import { ClusterBench, NAMESPACE } from '../cluster-bench.ts';

describe('The disruption controller', () => {
  let bench: ClusterBench;
  beforeEach(async () => {
    bench = new ClusterBench();
    await bench.start({
      controllers: ['disruption', 'deployment', 'replicaset', 'scheduler', 'kubelet'],
    });
  });
  afterEach(() => bench.end());

  const createBudget = (spec: object) =>
    bench.create(POD_DISRUPTION_BUDGETS, 'web', {
      spec: { selector: { matchLabels: { app: 'web' } }, ...spec },
    });
  const status = async () => (await bench.get(POD_DISRUPTION_BUDGETS, 'web')).status;
  const numbers = async () => {
    const { disruptionsAllowed, currentHealthy, desiredHealthy, expectedPods } = (await status())!;
    return { disruptionsAllowed, currentHealthy, desiredHealthy, expectedPods };
  };

  for (const { title, spec, desiredHealthy, disruptionsAllowed } of [
    { title: 'minAvailable', spec: { minAvailable: 3 }, desiredHealthy: 3, disruptionsAllowed: 1 },
    {
      title: 'a percentage of minAvailable',
      spec: { minAvailable: '30%' },
      desiredHealthy: 2,
      disruptionsAllowed: 2,
    },
    {
      title: 'maxUnavailable',
      spec: { maxUnavailable: 1 },
      desiredHealthy: 3,
      disruptionsAllowed: 1,
    },
  ]) {
    it(`computes the status for ${title}`, async () => {
      await bench.createDeployment('web', 4);
      await bench.pass(2000);
      await createBudget(spec);
      await bench.pass(2000);
      const expected = { disruptionsAllowed, currentHealthy: 4, desiredHealthy, expectedPods: 4 };
      assert.deepEqual(await numbers(), expected);
      assert.deepEqual(
        (await status())?.conditions?.map(({ type, status, reason }) => [type, status, reason]),
        [['DisruptionAllowed', 'True', 'SufficientPods']],
      );
    });
  }

  it('allows no disruption if the controller of a Pod has no scale', async () => {
    const owner = await bench.create(CONFIG_MAPS, 'owner');
    const ownerReferences = [controllerReference(owner)];
    const metadata = { labels: { app: 'web' }, ownerReferences };
    await bench.createPod('web', {}, metadata);
    await createBudget({ maxUnavailable: 1 });
    await bench.pass(100);
    const { conditions, disruptionsAllowed } = (await status())!;
    assert.equal(disruptionsAllowed, 0);
    assert.equal(conditions?.[0]?.reason, 'SyncFailed');
  });

  it('allows no disruption if the ReplicaSet of a Pod was replaced', async () => {
    await bench.createDeployment('web', 1);
    await bench.pass(2000);
    const [pod] = await bench.list(PODS);
    const owner = { ...controllerOf(pod!), uid: 'former' };
    await bench.createPod('old', {}, { labels: { app: 'web' }, ownerReferences: [owner] });
    await createBudget({ maxUnavailable: 1 });
    await bench.pass(100);
    assert.equal((await status())?.conditions?.[0]?.reason, 'SyncFailed');
  });

  it('counts an evicted Pod as unavailable, so that Pods are evicted one after the other', async () => {
    await bench.createDeployment('web', 2);
    await createBudget({ maxUnavailable: 1 });
    await bench.pass(2000);
    const evict = (name: string) =>
      bench.client.raw({
        method: 'POST',
        path: objectPath(PODS, { namespace: NAMESPACE, name }, 'eviction'),
        body: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name } },
      });
    const [first, second] = (await bench.list(PODS)).map(({ metadata }) => metadata.name);
    const held = { metadata: { finalizers: ['example.com/hold'] } };
    await bench.merge(PODS, first!, held);
    await evict(first!);
    await assert.rejects(evict(second!), { kind: 'tooManyRequests' });
    await bench.pass(500);
    assert.equal((await status())?.disruptedPods, undefined, 'it is being deleted');
    await bench.merge(PODS, first!, { metadata: { finalizers: null } });
    await bench.pass(5000);
    await evict(second!);
    await bench.pass(5000);
    assert.equal((await status())?.disruptedPods, undefined);
    assert.equal((await numbers()).currentHealthy, 2);
  });
});
