import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import {
  CONFIG_MAPS,
  POD_DISRUPTION_BUDGETS,
  PODS,
  REPLICA_SETS,
  STATEFUL_SETS,
} from '../../../../src/api/builtin.ts';
import { timestamp } from '../../../../src/api/conditions.ts';
import { controllerOf, controllerReference } from '../../../../src/api/metadata.ts';
import { objectPath } from '../../../../src/api/resource.ts';
import { ClusterBench, NAMESPACE, templateOf } from '../cluster-bench.ts';

describe('The disruption controller', () => {
  let bench: ClusterBench;
  beforeEach(async () => {
    bench = new ClusterBench();
    await bench.start({
      controllers: ['disruption', 'deployment', 'replicaset', 'scheduler', 'kubelet', 'events'],
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

  it('records that a budget selects no Pods', async () => {
    await createBudget({ maxUnavailable: 1 });
    await bench.pass(1000);
    assert.deepEqual(await bench.events('web'), ['NoPods No matching pods found']);
  });

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

  it('expects the replicas that a ReplicaSet should have', async () => {
    const selector = { matchLabels: { app: 'web' } };
    const spec = { replicas: 1, selector, template: templateOf({ app: 'web' }) };
    await bench.create(REPLICA_SETS, 'web', { spec });
    await bench.pass(2000);
    bench.server.faults.failNext({ resource: 'pods', verb: 'create' }, 403, { times: 100 });
    await bench.merge(REPLICA_SETS, 'web', { spec: { replicas: 4 } });
    await createBudget({ minAvailable: '50%' });
    await bench.pass(2000);
    const [disruptionsAllowed, currentHealthy, desiredHealthy, expectedPods] = [0, 1, 2, 4];
    const expected = { disruptionsAllowed, currentHealthy, desiredHealthy, expectedPods };
    assert.deepEqual(await numbers(), expected);
  });

  it('reads the scale of another controller again after a failure', async () => {
    const selector = { matchLabels: { app: 'web' } };
    const spec = { replicas: 2, selector, template: templateOf({ app: 'web' }), serviceName: '' };
    const set = await bench.create(STATEFUL_SETS, 'web', { spec });
    const ownerReferences = [controllerReference(set)];
    await bench.createPod('web', {}, { labels: { app: 'web' }, ownerReferences });
    bench.server.faults.failNext({ resource: 'statefulsets', subresource: 'scale' }, 403, {
      times: 3,
    });
    await createBudget({ maxUnavailable: 1 });
    await bench.pass(2000);
    assert.match((await bench.events('web')).join('\n'), /^CalculateExpectedPodCountFailed /m);
    assert.equal((await numbers()).expectedPods, 2);
  });

  it('expects a disrupted Pod to be deleted for two minutes', async () => {
    await bench.createDeployment('web', 2);
    await createBudget({ maxUnavailable: 1 });
    await bench.pass(2000);
    const [pod] = await bench.list(PODS);
    const disruptedPods = { [pod!.metadata.name]: timestamp(bench.clock.now()) };
    await bench.merge(POD_DISRUPTION_BUDGETS, 'web', { status: { disruptedPods } }, 'status');
    await bench.pass(119_000);
    assert.deepEqual((await status())?.disruptedPods, disruptedPods);
    assert.equal((await numbers()).currentHealthy, 1);
    await bench.pass(3000);
    assert.equal((await status())?.disruptedPods, undefined);
    assert.equal((await numbers()).currentHealthy, 2);
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
