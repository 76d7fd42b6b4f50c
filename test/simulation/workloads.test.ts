import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { DEPLOYMENTS, PODS, REPLICA_SETS } from '../../src/api/builtin.ts';
import type { Deployment } from '../../src/api/builtin.ts';
import type { Draft } from '../../src/api/object.ts';
import { isActive } from '../../src/api/workloads.ts';
import { Simulation } from '../support/simulation.ts';

const AT = { namespace: 'default', name: 'web' };

function deployment(spec: Partial<Deployment['spec']> = {}): Draft<Deployment> {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { ...AT },
    spec: {
      replicas: 4,
      selector: { matchLabels: { app: 'web' } },
      template: {
        metadata: { labels: { app: 'web' } },
        spec: { containers: [{ name: 'app', image: 'nginx:1' }] },
      },
      ...spec,
    },
  };
}

describe('A cluster with workload controllers', () => {
  let simulation: Simulation;

  beforeEach(() => {
    simulation = new Simulation();
    simulation.startCluster({ kubelet: { startupMs: 500 } });
  });
  afterEach(() => simulation.end());

  const live = () => simulation.client.get(DEPLOYMENTS, AT);
  const pods = async () => (await simulation.client.list(PODS, { namespace: 'default' })).items;
  const sets = async () =>
    (await simulation.client.list(REPLICA_SETS, { namespace: 'default' })).items;
  const patch = (spec: object) =>
    simulation.client.patch(DEPLOYMENTS, AT, { type: 'merge', body: { spec } });
  const setImage = (image: string) =>
    patch({ template: { spec: { containers: [{ name: 'app', image }] } } });
  const untilRolledOut = (replicas: number) =>
    simulation.until(`${replicas} updated and available`, async () => {
      const { metadata, status } = await live();
      return (
        status?.observedGeneration === metadata.generation &&
        (status?.updatedReplicas ?? 0) === replicas &&
        (status?.replicas ?? 0) === replicas &&
        (status?.availableReplicas ?? 0) === replicas
      );
    });

  it('creates Pods for a Deployment, and reports its status', async () => {
    await simulation.client.create(DEPLOYMENTS, deployment());
    await untilRolledOut(4);
    const { status } = await live();
    assert.deepEqual(
      status?.conditions?.map(({ type, status: is, reason }) => `${type} ${is} ${reason}`),
      ['Available True MinimumReplicasAvailable', 'Progressing True NewReplicaSetAvailable'],
    );
    assert.equal((await pods()).length, 4);
  });

  it('rolls out a new image within maxSurge and maxUnavailable, and can undo it', async () => {
    await simulation.client.create(DEPLOYMENTS, deployment());
    await untilRolledOut(4);
    await setImage('nginx:2');
    let most = 0;
    let fewest = Infinity;
    await simulation.until('rolled out', async () => {
      const active = (await pods()).filter(isActive);
      most = Math.max(most, active.length);
      const { status, metadata } = await live();
      fewest = Math.min(fewest, status?.availableReplicas ?? 0);
      return (
        status?.observedGeneration === metadata.generation &&
        status?.updatedReplicas === 4 &&
        status.replicas === 4
      );
    });
    assert.equal(most, 5, 'maxSurge of 25 %: one Pod');
    assert.equal(fewest, 3, 'maxUnavailable of 25 %: one Pod');
    assert.equal((await sets()).length, 2);
    // `kubectl rollout undo` replaces the annotations, so that at least one is required.
    const revision = async () => (await live()).metadata.annotations;
    assert.deepEqual(await revision(), { 'deployment.kubernetes.io/revision': '2' });
    await setImage('nginx:1');
    await untilRolledOut(4);
    assert.deepEqual(await revision(), { 'deployment.kubernetes.io/revision': '3' });
    assert.equal((await sets()).length, 2, 'the previous ReplicaSet is used again');
    const images = (await pods()).filter(isActive).map(({ spec }) => spec?.containers[0]?.image);
    assert.deepEqual(new Set(images), new Set(['nginx:1']));
  });

  it('scales up, down and to zero', async () => {
    await simulation.client.create(DEPLOYMENTS, deployment());
    for (const replicas of [7, 2, 0]) {
      await patch({ replicas });
      await untilRolledOut(replicas);
    }
  });

  it('runs no two images at once with the Recreate strategy', async () => {
    await simulation.client.create(DEPLOYMENTS, deployment({ strategy: { type: 'Recreate' } }));
    await untilRolledOut(4);
    await setImage('nginx:2');
    const seen = new Set<string>();
    await simulation.until('rolled out', async () => {
      const images = (await pods())
        .filter(isActive)
        .map((pod) => String(pod.spec?.containers[0]?.image));
      seen.add([...new Set(images)].toSorted().join('+'));
      const { status, metadata } = await live();
      return status?.observedGeneration === metadata.generation && status?.updatedReplicas === 4;
    });
    assert.deepEqual([...seen], ['nginx:1', '', 'nginx:2']);
  });

  it('deletes ReplicaSets and Pods with the Deployment', async () => {
    await simulation.client.create(DEPLOYMENTS, deployment());
    await untilRolledOut(4);
    await simulation.client.delete(DEPLOYMENTS, AT);
    await simulation.until(
      'all gone',
      async () => (await pods()).length + (await sets()).length === 0,
    );
  });
});
