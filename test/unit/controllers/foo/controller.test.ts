import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isApiError } from '../../../../src/api/api-error.ts';
import { DEPLOYMENTS, NAMESPACES } from '../../../../src/api/builtin.ts';
import type { Deployment } from '../../../../src/api/builtin.ts';
import { FOOS } from '../../../../src/api/generated/foo.ts';
import type { Foo } from '../../../../src/api/generated/foo.ts';
import { objectKey } from '../../../../src/api/object-key.ts';
import type { Draft } from '../../../../src/api/object.ts';
import { controllerReference } from '../../../../src/api/metadata.ts';
import { buildFooDeployment, FOO_COMPONENT } from '../../../../src/controllers/foo/deployment.ts';
import { fooSync } from '../../../../src/controllers/foo/controller.ts';
import { TerminalError } from '../../../../src/workqueue/outcome.ts';
import { assertEndsAtEachRequest, NAMESPACE, SyncBench } from '../../../support/sync-bench.ts';

type Conditions = NonNullable<NonNullable<Deployment['status']>['conditions']>;

const AT = { namespace: NAMESPACE, name: 'foo' };

function fooDraft(spec: Partial<Foo['spec']> = {}, name = 'foo'): Draft<Foo> {
  return {
    apiVersion: 'samplecontroller.k8s.io/v1alpha1',
    kind: 'Foo',
    metadata: { name, namespace: NAMESPACE },
    spec: { deploymentName: 'web', replicas: 2, ...spec },
  };
}

async function setUp(spec: Partial<Foo['spec']> = {}) {
  const bench = await SyncBench.with(FOOS);
  const foos = bench.cache<Foo>();
  const deployments = bench.cache<Deployment>();
  const foo = await bench.create(FOOS, fooDraft(spec));
  foos.show(foo);
  const sync = fooSync({
    foos: foos.lister,
    deployments: deployments.lister,
    recorder: bench.recorder,
    clock: bench.clock,
  });
  const run = () => bench.sync(sync, objectKey(NAMESPACE, 'foo'));
  /** Updates the caches to the state of the server. */
  const catchUp = async () => {
    foos.show(...(await bench.list(FOOS)));
    const present = await bench.list(DEPLOYMENTS);
    const uids = new Set(present.map(({ metadata }) => metadata.uid));
    deployments.hide(
      ...deployments.lister.list().filter(({ metadata }) => !uids.has(metadata.uid)),
    );
    deployments.show(...present);
  };
  const condition = async (type: string) =>
    (await bench.get(FOOS, 'foo')).status?.conditions?.find((one) => one.type === type);
  const rollOut = (available: number, updated = available, conditions: Conditions = []) =>
    bench.client.patch(
      DEPLOYMENTS,
      { namespace: NAMESPACE, name: 'web' },
      {
        type: 'merge',
        body: {
          status: {
            observedGeneration: 1,
            replicas: updated,
            updatedReplicas: updated,
            readyReplicas: available,
            availableReplicas: available,
            conditions,
          },
        },
      },
      { subresource: 'status' },
    );
  return { bench, foo, foos, deployments, run, catchUp, condition, rollOut };
}

describe('A sync of a Foo', () => {
  it('creates its Deployment, records Synced, then writes the status', async () => {
    const { bench, foo, run, condition } = await setUp();
    await run();
    assert.deepEqual(bench.steps, [
      'create deployments',
      'event Synced',
      'sent Synced',
      'patch foos/status',
    ]);
    const [creation, status] = bench.writes;
    assert.equal(creation?.fieldManager, FOO_COMPONENT);
    assert.deepEqual(creation?.body.metadata?.['ownerReferences'], [controllerReference(foo)]);
    const { uid, resourceVersion } = foo.metadata;
    assert.deepEqual(status?.body.metadata, { uid, resourceVersion });
    assert.equal(status?.fieldManager, FOO_COMPONENT);
    const ready = await condition('Ready');
    assert.equal(ready?.status, 'False');
    assert.equal(ready?.reason, 'DeploymentNotAvailable');
    assert.equal(ready?.message, '0 of 2 replicas are available');
    assert.equal((await bench.get(FOOS, 'foo')).status?.observedGeneration, 1);
  });

  it('follows the rollout: reconciling, ready, and stalled after the deadline', async () => {
    const { bench, run, catchUp, condition, rollOut } = await setUp();
    await run();
    await rollOut(1);
    await catchUp();
    await run();
    assert.equal((await condition('Ready'))?.message, '1 of 2 replicas are available');
    assert.equal((await condition('Reconciling'))?.status, 'True');
    await rollOut(2);
    await catchUp();
    await run();
    assert.equal((await condition('Ready'))?.reason, 'DeploymentAvailable');
    assert.equal((await condition('Ready'))?.status, 'True');
    assert.equal(await condition('Reconciling'), undefined);
    assert.equal((await bench.get(FOOS, 'foo')).status?.availableReplicas, 2);
    const late = { type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded' };
    await rollOut(1, 1, [late]);
    await catchUp();
    await run();
    assert.equal((await condition('Stalled'))?.reason, 'ProgressDeadlineExceeded');
    // The Synced event of this generation is recorded already.
    assert.equal(bench.events.length, 1);
  });

  it('writes nothing in the desired state', async () => {
    const { bench, run, catchUp } = await setUp();
    await run();
    await catchUp();
    bench.steps.length = 0;
    bench.lines.length = 0;
    await run();
    assert.deepEqual(bench.steps, []);
    assert.deepEqual(bench.lines, []);
  });

  it('applies the Deployment with its uid if its spec differs', async () => {
    const { bench, run, catchUp } = await setUp();
    await run();
    const { metadata } = await bench.get(DEPLOYMENTS, 'web');
    const body = { spec: { replicas: 5 } };
    await bench.client.patch(FOOS, AT, { type: 'merge', body });
    await catchUp();
    bench.writes.length = 0;
    await run();
    const apply = bench.writes.findLast(({ what }) => what === 'patch deployments');
    assert.equal(apply?.body.metadata?.['uid'], metadata.uid);
    assert.equal((await bench.get(DEPLOYMENTS, 'web')).spec?.replicas, 5);
    assert.equal(bench.events.filter((event) => event.startsWith('Normal Synced')).length, 2);
  });

  it('stalls on an unowned Deployment with the name, and does not write to it', async () => {
    const { bench, deployments, run, condition } = await setUp();
    const other = await bench.create(FOOS, fooDraft({}, 'other'));
    const unowned = await bench.create(DEPLOYMENTS, buildFooDeployment(other));
    deployments.show(unowned);
    await assert.rejects(run(), /already exists and is not managed by Foo/);
    await assert.rejects(run(), (error) => !(error instanceof TerminalError));
    assert.deepEqual(new Set(bench.taken()), new Set(['patch foos/status foo']));
    assert.deepEqual(await bench.get(DEPLOYMENTS, 'web'), unowned);
    assert.equal((await condition('Stalled'))?.reason, 'ErrResourceExists');
    assert.match(bench.events[0] ?? '', /^Warning ErrResourceExists: Resource "web"/);
  });

  it('records a name collision at each retry, and writes its status once', async () => {
    const { bench, foos, run } = await setUp();
    const other = await bench.create(FOOS, fooDraft({}, 'other'));
    await bench.create(DEPLOYMENTS, buildFooDeployment(other));
    await assert.rejects(run(), /already exists and is not managed by Foo/);
    foos.show(await bench.get(FOOS, 'foo'));
    await assert.rejects(run(), /already exists and is not managed by Foo/);
    const steps = bench.steps.filter((step) => !step.startsWith('sent'));
    assert.deepEqual(steps, [
      'create deployments',
      'event ErrResourceExists',
      'patch foos/status',
      'create deployments',
      'event ErrResourceExists',
    ]);
  });

  it('waits for the Deployment of a previous Foo of the same name', async () => {
    const { bench, foo, deployments, run, condition } = await setUp();
    const former = { ...foo, metadata: { ...foo.metadata, uid: 'uid-of-the-former' } };
    deployments.show(await bench.create(DEPLOYMENTS, buildFooDeployment(former)));
    await run();
    assert.deepEqual(bench.taken(), ['patch foos/status foo']);
    assert.equal((await condition('Ready'))?.reason, 'DeploymentTerminating');
    assert.equal((await condition('Reconciling'))?.status, 'True');
    assert.deepEqual(bench.events, []);
  });

  it('deletes the Deployment with the previous name by uid, after it created the new one', async () => {
    const { bench, run, catchUp } = await setUp();
    await run();
    const { metadata } = await bench.get(DEPLOYMENTS, 'web');
    const body = { spec: { deploymentName: 'www' } };
    await bench.client.patch(FOOS, AT, { type: 'merge', body });
    await catchUp();
    bench.writes.length = 0;
    await run();
    assert.deepEqual(
      bench.writes.map(({ what, name }) => `${what} ${name}`),
      ['create deployments www', 'delete deployments web', 'patch foos/status foo'],
    );
    assert.deepEqual(bench.writes[1]?.body.preconditions, { uid: metadata.uid });
    const left = await bench.list(DEPLOYMENTS);
    assert.deepEqual(
      left.map((deployment) => deployment.metadata.name),
      ['www'],
    );
  });

  it('does not delete another object with the previous name', async () => {
    const { bench, run, catchUp, deployments } = await setUp();
    await run();
    const own = await bench.get(DEPLOYMENTS, 'web');
    await bench.client.patch(FOOS, AT, {
      type: 'merge',
      body: { spec: { deploymentName: 'www' } },
    });
    await catchUp();
    await bench.client.delete(DEPLOYMENTS, own.metadata);
    const other = await bench.create(FOOS, fooDraft({}, 'other'));
    const unowned = await bench.create(DEPLOYMENTS, buildFooDeployment(other));
    // The cache is behind: the sync is retried.
    await assert.rejects(run(), (error) => isApiError(error, 'conflict'));
    assert.equal((await bench.get(DEPLOYMENTS, 'web')).metadata.uid, unowned.metadata.uid);
    deployments.show(unowned);
    await catchUp();
    await run();
    assert.equal((await bench.get(DEPLOYMENTS, 'web')).metadata.uid, unowned.metadata.uid);
  });

  it('does not delete a terminating Deployment with the previous name again', async () => {
    const { bench, run, catchUp, foo } = await setUp({ deploymentName: 'www' });
    await run();
    const draft = buildFooDeployment({ ...foo, spec: { ...foo.spec, deploymentName: 'web' } });
    const finalizers = ['test/keep'];
    const held = { ...draft, metadata: { ...draft.metadata, finalizers } };
    await bench.create(DEPLOYMENTS, held);
    await bench.client.delete(DEPLOYMENTS, { namespace: NAMESPACE, name: 'web' });
    await catchUp();
    bench.writes.length = 0;
    await run();
    assert.deepEqual(bench.writes, []);
  });

  it('retries a failed deletion, unless the Deployment is gone', async () => {
    const { bench, run, catchUp } = await setUp();
    await run();
    await bench.client.patch(FOOS, AT, {
      type: 'merge',
      body: { spec: { deploymentName: 'www' } },
    });
    await catchUp();
    bench.server.faults.failNext('DELETE', 403);
    await assert.rejects(run(), (error) => isApiError(error, 'forbidden'));
    const { status } = await bench.get(FOOS, 'foo');
    assert.equal(status?.observedGeneration, 1);
  });

  it('does nothing for a Foo that is being deleted or not in the cache', async () => {
    const { bench, foo, foos, run } = await setUp();
    const deletionTimestamp = '2026-01-01T00:00:00Z';
    foos.show({ ...foo, metadata: { ...foo.metadata, deletionTimestamp } });
    await run();
    foos.hide(foo);
    await run();
    assert.deepEqual(bench.steps, []);
  });

  it('stalls on an invalid spec, and records one event', async () => {
    const { bench, foos, foo, run, condition } = await setUp();
    const spec = { deploymentName: 'Not A Name', replicas: 1 };
    foos.show({ ...foo, spec });
    await assert.rejects(run(), TerminalError);
    assert.deepEqual(bench.steps, ['event InvalidSpec', 'sent InvalidSpec', 'patch foos/status']);
    assert.equal((await condition('Stalled'))?.reason, 'InvalidSpec');
    foos.show({ ...(await bench.get(FOOS, 'foo')), spec });
    await run();
    assert.equal(bench.events.length, 1);
  });

  it('stalls on a Deployment that the server rejects as invalid, and is retried', async () => {
    const { bench, foos, run, condition } = await setUp();
    bench.server.faults.failNext({ method: 'POST', resource: 'deployments' }, 422, { times: 2 });
    await assert.rejects(run(), (error) => !(error instanceof TerminalError));
    assert.equal((await condition('Stalled'))?.reason, 'DeploymentRejected');
    assert.match(bench.events[0] ?? '', /^Warning DeploymentRejected: /);
    foos.show(await bench.get(FOOS, 'foo'));
    await assert.rejects(run(), (error) => !(error instanceof TerminalError));
    assert.equal(bench.events.length, 1);
  });

  it('throws any other error, and writes no status', async () => {
    const { bench, run } = await setUp();
    bench.server.faults.failNext({ method: 'POST', resource: 'deployments' }, 403);
    await assert.rejects(run(), (error) => isApiError(error, 'forbidden'));
    assert.deepEqual(bench.steps, ['create deployments']);
  });

  it('reports nothing if its namespace is being deleted', async () => {
    const { bench, run } = await setUp();
    await bench.client.delete(NAMESPACES, { name: NAMESPACE });
    await run();
    assert.deepEqual(bench.steps, ['create deployments']);
  });

  it('keeps conditions of other writers in the status', async () => {
    const { bench, run, catchUp } = await setUp();
    const unowned = {
      type: 'Audited',
      status: 'True',
      reason: 'Nightly',
      message: 'fine',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    } as const;
    const body = { status: { conditions: [unowned] } };
    await bench.client.patch(FOOS, AT, { type: 'merge', body }, { subresource: 'status' });
    await catchUp();
    await run();
    const { status } = await bench.get(FOOS, 'foo');
    assert.deepEqual(status?.conditions?.[0], unowned);
    assert.ok((status?.conditions?.length ?? 0) > 1);
  });

  it('ends when the daemon stops during any request, and reports no failure', () =>
    assertEndsAtEachRequest(setUp));
});
