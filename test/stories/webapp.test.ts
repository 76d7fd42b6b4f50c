import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { DEPLOYMENTS, SERVICES } from '../../src/api/builtin.ts';
import { isApiError } from '../../src/api/api-error.ts';
import { WEB_APPS } from '../../src/api/generated/web-app.ts';
import type { WebApp } from '../../src/api/generated/web-app.ts';
import type { TestCluster } from '../support/test-cluster.ts';
import { inTestClusters } from '../support/test-clusters.ts';

const NAME = 'webapp-sample';

function conditionsOf({ status }: WebApp): Record<string, string> {
  return Object.fromEntries(
    (status?.conditions ?? []).map(({ type, status: is, reason }) => [type, `${is} ${reason}`]),
  );
}

function testIn(where: string, create: () => Promise<TestCluster>): void {
  describe(`A WebApp and the daemon, ${where}`, () => {
    let cluster: TestCluster;
    let stopDaemon: () => Promise<void>;

    beforeEach(async () => {
      cluster = await create();
      await cluster.installCrd(WEB_APPS, DEPLOYMENTS, SERVICES);
      stopDaemon = startDaemon();
    });
    afterEach(() => cluster.end());

    const startDaemon = () => cluster.startDaemon({ controllers: ['webapp'] });
    const at = () => ({ namespace: cluster.namespace, name: NAME });
    const webapp = () => cluster.client.get(WEB_APPS, at());
    const deployment = () => cluster.client.get(DEPLOYMENTS, at());
    const service = () => cluster.client.get(SERVICES, at());
    const isGone = async (what: Promise<unknown>) => {
      try {
        await what;
        return false;
      } catch (error) {
        if (isApiError(error, 'notFound')) return true;
        throw error;
      }
    };
    const apply = (spec: Partial<WebApp['spec']> = {}) =>
      cluster.client.create(WEB_APPS, {
        apiVersion: 'jiajunhuang.com/v1',
        kind: 'WebApp',
        metadata: at(),
        spec: { version: 'stable-alpine3.20-perl', replicas: 2, image: 'nginx:latest', ...spec },
      });
    const patch = (spec: object) =>
      cluster.client.patch(WEB_APPS, at(), { type: 'merge', body: { spec } });
    const untilReady = () =>
      cluster.until('ready', async () => {
        const { metadata, status } = await webapp();
        return (
          status?.observedGeneration === metadata.generation &&
          (status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ??
            false)
        );
      });

    it('runs its tasks in order, and reports each in its status', async () => {
      await apply();
      await untilReady();
      await cluster.settle();
      const { status, metadata } = await webapp();
      assert.deepEqual(metadata.finalizers, ['jiajunhuang.com/webapp']);
      assert.deepEqual(conditionsOf(await webapp()), {
        Ready: 'True TasksDone',
        DeploymentDone: 'True Done',
        ServiceDone: 'True Done',
        RolloutDone: 'True Done',
      });
      assert.equal(status?.availableReplicas, 2);
      assert.deepEqual(
        new Set(status.conditions?.map(({ phase }) => phase)),
        new Set(['Available']),
      );
      assert.equal(status.conditions?.[0]?.message, '2 of 2 replicas are available');
      const { spec } = await deployment();
      assert.equal(spec?.template.spec?.containers[0]?.image, 'nginx:latest');
      assert.equal(
        spec.template.metadata?.labels?.['app.kubernetes.io/version'],
        'stable-alpine3.20-perl',
      );
      assert.deepEqual((await service()).spec?.selector, spec.selector.matchLabels);
      assert.deepEqual(await cluster.events('webapp-controller'), [
        'Synced WebApp synced successfully',
      ]);
      assert.deepEqual(cluster.errors(), []);
    });

    it('applies a change to the owned objects; a new leader writes nothing and records no event', async () => {
      await apply();
      await untilReady();
      await patch({ version: '1.27', image: null, replicas: 3 });
      await untilReady();
      await cluster.settle();
      const { spec } = await deployment();
      assert.equal(spec?.template.spec?.containers[0]?.image, 'nginx:1.27');
      assert.equal(spec.replicas, 3);
      const state = async () => [await webapp(), await deployment(), await service()];
      const before = await state();
      await stopDaemon();
      startDaemon();
      await cluster.settle();
      assert.deepEqual(await state(), before);
    });

    it('reverts its tasks in reverse order when it is deleted, and then removes its finalizer', async () => {
      await apply();
      await untilReady();
      await cluster.client.delete(WEB_APPS, at());
      await cluster.until('gone', () => isGone(webapp()));
      assert.ok(await isGone(deployment()));
      assert.ok(await isGone(service()));
      // On a shared control plane, the daemon also cleans up the WebApps of earlier tests' namespaces.
      const deleted = cluster.lines
        .filter(({ fields }) => fields['webApp'] === `${cluster.namespace}/${NAME}`)
        .map(({ message }) => message)
        .filter((message) => message.startsWith('Deleted '));
      assert.deepEqual(deleted, ['Deleted Service', 'Deleted Deployment']);
    });

    it('is deleted by the next daemon if no daemon runs at its deletion', async () => {
      await apply();
      await untilReady();
      await stopDaemon();
      await cluster.client.delete(WEB_APPS, at());
      await cluster.settle();
      assert.ok((await webapp()).metadata.deletionTimestamp);
      startDaemon();
      await cluster.until('gone', () => isGone(webapp()));
    });

    it('stops the pipeline at an unowned Service with its name, and keeps that unchanged', async () => {
      const unowned = await cluster.client.create(SERVICES, {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: at(),
        spec: { selector: { app: 'theirs' }, ports: [{ port: 8080 }] },
      });
      await apply();
      await cluster.until('stalled', async () => 'Stalled' in conditionsOf(await webapp()));
      const stalled = conditionsOf(await webapp());
      assert.equal(stalled['ServiceDone'], 'False ErrResourceExists');
      assert.equal(stalled['DeploymentDone'], 'True Done');
      assert.equal(stalled['RolloutDone'], 'Unknown NotYetRun');
      assert.deepEqual((await service()).spec, unowned.spec);
      await cluster.client.delete(SERVICES, at());
      await untilReady();
    });
  });
}

inTestClusters(testIn);
