import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { DEPLOYMENTS } from '../../src/api/builtin.ts';
import type { Deployment } from '../../src/api/builtin.ts';
import { isApiError } from '../../src/api/api-error.ts';
import { FOOS } from '../../src/api/generated/foo.ts';
import type { Foo } from '../../src/api/generated/foo.ts';
import type { Draft } from '../../src/api/object.ts';
import type { TestCluster } from '../support/test-cluster.ts';
import { inTestClusters } from '../support/test-clusters.ts';

function testIn(where: string, create: () => Promise<TestCluster>): void {
  describe(`A Foo and the daemon, ${where}`, () => {
    let cluster: TestCluster;
    let stopDaemon: () => Promise<void>;

    beforeEach(async () => {
      cluster = await create();
      await cluster.installCrd(FOOS, DEPLOYMENTS);
      stopDaemon = startDaemon();
    });
    afterEach(() => cluster.end());

    const startDaemon = () => cluster.startDaemon({ controllers: ['foo'] });
    const at = (name: string) => ({ namespace: cluster.namespace, name });
    const foo = () => cluster.client.get(FOOS, at('example-foo'));
    const deployment = (name: string = 'web') => cluster.client.get(DEPLOYMENTS, at(name));
    const names = async () =>
      (await cluster.client.list(DEPLOYMENTS, { namespace: cluster.namespace })).items
        .map(({ metadata }) => metadata.name)
        .toSorted();
    const apply = (spec: Partial<Foo['spec']> = {}) =>
      cluster.client.create(FOOS, {
        apiVersion: 'samplecontroller.k8s.io/v1alpha1',
        kind: 'Foo',
        metadata: at('example-foo'),
        spec: { deploymentName: 'web', replicas: 1, ...spec },
      });
    const patch = (spec: Partial<Foo['spec']>) =>
      cluster.client.patch(FOOS, at('example-foo'), { type: 'merge', body: { spec } });
    const untilAvailable = (replicas: number) =>
      cluster.until(`${replicas} available`, async () => {
        const { metadata, status } = await foo();
        return (
          status?.observedGeneration === metadata.generation &&
          status?.availableReplicas === replicas &&
          (status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ??
            false)
        );
      });
    const unowned = (): Draft<Deployment> => ({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: at('web'),
      spec: {
        replicas: 2,
        selector: { matchLabels: { app: 'theirs' } },
        template: {
          metadata: { labels: { app: 'theirs' } },
          spec: { containers: [{ name: 'app', image: 'theirs' }] },
        },
      },
    });

    it('creates its Deployment, becomes available, and records one Synced event', async () => {
      const { metadata } = await apply({ replicas: 2 });
      await untilAvailable(2);
      await cluster.settle();
      const { spec, metadata: child } = await deployment();
      assert.equal(child.ownerReferences?.[0]?.uid, metadata.uid);
      assert.deepEqual(spec?.template.metadata?.labels, {
        app: 'nginx',
        controller: 'example-foo',
      });
      assert.equal(spec.template.spec?.containers[0]?.image, 'nginx:latest');
      assert.equal((await foo()).status?.selector, 'app=nginx,controller=example-foo');
      assert.deepEqual(await cluster.events('sample-controller'), [
        'Synced Foo synced successfully',
      ]);
      assert.deepEqual(cluster.errors(), []);
    });

    it('a new leader writes nothing and records no event', async () => {
      await apply();
      await untilAvailable(1);
      await cluster.settle();
      const before = [await foo(), await deployment(), await cluster.events('sample-controller')];
      await stopDaemon();
      startDaemon();
      await cluster.settle();
      assert.deepEqual(
        [await foo(), await deployment(), await cluster.events('sample-controller')],
        before,
      );
    });

    it('applies its replicas to the Deployment, and restores them when another client scales it', async () => {
      await apply();
      await untilAvailable(1);
      await patch({ replicas: 3 });
      await untilAvailable(3);
      const body = { spec: { replicas: 7 } };
      await cluster.client.patch(DEPLOYMENTS, at('web'), { type: 'merge', body });
      await cluster.until(
        'replicas restored',
        async () => (await deployment()).spec?.replicas === 3,
      );
    });

    it('keeps an unowned Deployment with its name unchanged, and continues when that is gone', async () => {
      const before = await cluster.client.create(DEPLOYMENTS, unowned());
      await apply();
      await cluster.until('the collision is reported', async () =>
        (await cluster.events('sample-controller')).includes(
          'ErrResourceExists Resource "web" already exists and is not managed by Foo',
        ),
      );
      const after = await deployment();
      assert.deepEqual([after.metadata.uid, after.spec], [before.metadata.uid, before.spec]);
      await cluster.client.delete(DEPLOYMENTS, at('web'), { propagationPolicy: 'Background' });
      await untilAvailable(1);
      const events = await cluster.events('sample-controller');
      assert.ok(events.includes('Synced Foo synced successfully'), events.join());
    });

    it('creates a new Deployment after a change of deploymentName, and deletes the old one', async () => {
      await apply();
      await untilAvailable(1);
      await patch({ deploymentName: 'site' });
      await cluster.until('renamed', async () => (await names()).join() === 'site');
      await untilAvailable(1);
    });

    it('creates a deleted Deployment again, and deletes it with the Foo', async () => {
      await apply();
      await untilAvailable(1);
      const { uid } = (await deployment()).metadata;
      await cluster.client.delete(DEPLOYMENTS, at('web'), { propagationPolicy: 'Background' });
      await cluster.until('back', async () => {
        try {
          return (await deployment()).metadata.uid !== uid;
        } catch (error) {
          if (isApiError(error, 'notFound')) return false;
          throw error;
        }
      });
      await untilAvailable(1);
      await cluster.client.delete(FOOS, at('example-foo'), { propagationPolicy: 'Background' });
      await cluster.until('gone', async () => (await names()).length === 0);
    });
  });
}

inTestClusters(testIn);
