import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isApiError } from '../../../../src/api/api-error.ts';
import { DEPLOYMENTS, NAMESPACES, SERVICES } from '../../../../src/api/builtin.ts';
import type { Deployment, Service } from '../../../../src/api/builtin.ts';
import { WEB_APPS } from '../../../../src/api/generated/web-app.ts';
import type { WebApp } from '../../../../src/api/generated/web-app.ts';
import {
  buildWebAppDeployment,
  buildService,
  WEB_APP_COMPONENT,
} from '../../../../src/controllers/webapp/owned-objects.ts';
import { standardTasks } from '../../../../src/controllers/webapp/standard-tasks.ts';
import { TaskError } from '../../../../src/controllers/webapp/task.ts';
import { NAMESPACE, SyncBench } from '../../../support/sync-bench.ts';

const AT = { namespace: NAMESPACE, name: 'web' };

async function setUp(spec: Partial<WebApp['spec']> = {}) {
  const bench = await SyncBench.with(WEB_APPS);
  const deployments = bench.cache<Deployment>();
  const services = bench.cache<Service>();
  const webapp = await bench.create(WEB_APPS, {
    apiVersion: 'jiajunhuang.com/v1',
    kind: 'WebApp',
    metadata: { ...AT },
    spec: { version: '1.25', replicas: 2, ...spec },
  });
  const tasks = standardTasks({ deployments: deployments.lister, services: services.lister });
  const [deployment, service, rollout] = tasks;
  if (!deployment || !service || !rollout) throw new Error('three tasks');
  const context = { ...bench.context, webapp };
  return { bench, webapp, deployments, services, deployment, service, rollout, context };
}

describe('The task of a Deployment or a Service', () => {
  for (const kind of ['deployment', 'service'] as const) {
    const resource = kind === 'deployment' ? DEPLOYMENTS : SERVICES;

    it(`creates a missing ${kind}, and is done in the desired state`, async () => {
      const fixture = await setUp();
      const { bench, webapp, context } = fixture;
      assert.equal(await fixture[kind].create?.(context), undefined);
      const [creation] = bench.writes;
      assert.equal(creation?.what, `create ${resource.plural}`);
      assert.equal(creation?.fieldManager, WEB_APP_COMPONENT);
      const owners = creation?.body.metadata?.['ownerReferences'] as { uid: string }[];
      assert.equal(owners[0]?.uid, webapp.metadata.uid);
      fixture.deployments.show(...(await bench.list(DEPLOYMENTS)));
      fixture.services.show(...(await bench.list(SERVICES)));
      bench.writes.length = 0;
      assert.equal(await fixture[kind].create?.(context), undefined);
      assert.deepEqual(bench.writes, []);
    });

    it(`stalls on the ${kind} of another owner, and does not write to it`, async () => {
      const fixture = await setUp();
      const { bench, webapp, context } = fixture;
      const metadata = { ...webapp.metadata, uid: 'uid-of-another', name: 'other' };
      const other = { ...webapp, metadata };
      if (kind === 'deployment') {
        const unowned = {
          ...buildWebAppDeployment(other),
          metadata: { ...buildWebAppDeployment(other).metadata, name: 'web' },
        };
        await bench.create(DEPLOYMENTS, unowned);
      } else {
        const unowned = {
          ...buildService(other),
          metadata: { ...buildService(other).metadata, name: 'web' },
        };
        await bench.create(SERVICES, unowned);
      }
      await assert.rejects(
        async () => fixture[kind].create?.(context),
        (error) => {
          assert.ok(error instanceof TaskError);
          assert.equal(error.reason, 'ErrResourceExists');
          assert.equal(error.stalled, true);
          assert.equal(error.terminal, false);
          return true;
        },
      );
      assert.deepEqual(
        bench.writes.map(({ what }) => what),
        [`create ${resource.plural}`],
      );
    });

    it(`waits while the ${kind} is being deleted`, async () => {
      const fixture = await setUp();
      const { bench, webapp, context } = fixture;
      const deletionTimestamp = '2026-01-01T00:00:00Z';
      if (kind === 'deployment') {
        const own = await bench.create(DEPLOYMENTS, buildWebAppDeployment(webapp));
        fixture.deployments.show({ ...own, metadata: { ...own.metadata, deletionTimestamp } });
      } else {
        const own = await bench.create(SERVICES, buildService(webapp));
        fixture.services.show({ ...own, metadata: { ...own.metadata, deletionTimestamp } });
      }
      const wait = await fixture[kind].create?.(context);
      assert.match(wait?.message ?? '', /is being deleted/);
      const again = await fixture[kind].delete?.(context);
      assert.match(again?.message ?? '', /is being deleted/);
      assert.deepEqual(bench.writes, []);
    });

    it(`fails as stalled if the server rejects the ${kind}, and throws other errors`, async () => {
      const fixture = await setUp();
      fixture.bench.server.faults.failNext('POST', 422);
      await assert.rejects(
        async () => fixture[kind].create?.(fixture.context),
        (error) => {
          assert.ok(error instanceof TaskError);
          assert.match(error.reason, /^(Deployment|Service)Rejected$/);
          assert.equal(error.stalled, true);
          return true;
        },
      );
      fixture.bench.server.faults.failNext('POST', 403);
      await assert.rejects(
        async () => fixture[kind].create?.(fixture.context),
        (error) => isApiError(error, 'forbidden'),
      );
    });

    it(`waits if the namespace of the ${kind} is being deleted`, async () => {
      const fixture = await setUp();
      await fixture.bench.client.delete(NAMESPACES, { name: NAMESPACE });
      const wait = await fixture[kind].create?.(fixture.context);
      assert.match(wait?.message ?? '', /namespace/);
    });

    it(`deletes its own ${kind} by uid, and is done when that is gone`, async () => {
      const fixture = await setUp();
      const { bench, context } = fixture;
      await fixture.deployment.create?.(context);
      await fixture.service.create?.(context);
      fixture.deployments.show(...(await bench.list(DEPLOYMENTS)));
      fixture.services.show(...(await bench.list(SERVICES)));
      const own =
        kind === 'deployment'
          ? await bench.get(DEPLOYMENTS, 'web')
          : await bench.get(SERVICES, 'web');
      bench.writes.length = 0;
      const wait = await fixture[kind].delete?.(context);
      assert.match(wait?.message ?? '', /is being deleted/);
      assert.deepEqual(bench.writes[0]?.body.preconditions, { uid: own.metadata.uid });
      // The cache still contains the deleted object.
      assert.match((await fixture[kind].delete?.(context))?.message ?? '', /is being deleted/);
      for (const cache of [fixture.deployments, fixture.services]) cache.hide({ ...own } as never);
      assert.equal(await fixture[kind].delete?.(context), undefined);
    });

    it(`does not delete the ${kind} of another owner`, async () => {
      const fixture = await setUp();
      const { bench, webapp, context } = fixture;
      const metadata = { ...webapp.metadata, uid: 'uid-of-another' };
      const other = { ...webapp, metadata };
      fixture.deployments.show(await bench.create(DEPLOYMENTS, buildWebAppDeployment(other)));
      fixture.services.show(await bench.create(SERVICES, buildService(other)));
      assert.equal(await fixture[kind].delete?.(context), undefined);
      assert.deepEqual(bench.writes, []);
    });
  }
});

describe('The task of the rollout', () => {
  const statusOf = (updated: number, available: number, more: object = {}) => ({
    observedGeneration: 1,
    replicas: updated,
    updatedReplicas: updated,
    availableReplicas: available,
    ...more,
  });

  async function rolledOut(status: object, spec: object = {}) {
    const fixture = await setUp();
    const own = await fixture.bench.create(DEPLOYMENTS, buildWebAppDeployment(fixture.webapp));
    fixture.deployments.show({ ...own, spec: { ...own.spec, ...spec }, status });
    await fixture.deployment.create?.(fixture.context);
    return () => fixture.rollout.postCreate?.(fixture.context);
  }

  it('waits for the task of the Deployment, and for the observation of its write', async () => {
    const { rollout, context } = await setUp();
    assert.match(
      (await rollout.postCreate?.(context))?.message ?? '',
      /rollout of the Deployment has not started/,
    );
    const step = await rolledOut(statusOf(3, 3), { replicas: 3 });
    assert.equal((await step())?.message, '0 of 2 replicas are available');
  });

  it('waits until all replicas are updated and available, and reports their number', async () => {
    const waiting = async (status: object) => (await (await rolledOut(status))())?.message;
    assert.equal(await waiting(statusOf(2, 1)), '1 of 2 replicas are available');
    assert.equal(await waiting(statusOf(1, 2)), '1 of 2 replicas are updated');
    assert.equal(await waiting(statusOf(1, 1)), '1 of 2 replicas are available');
    assert.equal(await waiting(statusOf(2, 2)), undefined);
    // One surplus Pod still exists.
    assert.equal(await waiting(statusOf(2, 2, { replicas: 3 })), '2 of 2 replicas are available');
    // The Deployment controller has not observed the last change.
    assert.equal(
      await waiting(statusOf(2, 2, { observedGeneration: 0 })),
      '0 of 2 replicas are updated',
    );
  });

  it('fails with a terminal error after the progress deadline, unless the rollout is complete', async () => {
    const conditions = [
      { type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded' },
    ];
    const late = await rolledOut(statusOf(2, 1, { conditions }));
    await assert.rejects(
      async () => late(),
      (error) => {
        assert.ok(error instanceof TaskError);
        assert.equal(error.reason, 'ProgressDeadlineExceeded');
        assert.equal(error.terminal, true);
        return true;
      },
    );
    const complete = await rolledOut(statusOf(2, 2, { conditions }));
    assert.equal(await complete(), undefined);
  });
});
