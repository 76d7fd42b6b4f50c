import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError, isApiError, isCausedByInvalid } from '../../../../src/api/api-error.ts';
import { DEPLOYMENTS } from '../../../../src/api/builtin.ts';
import type { Deployment } from '../../../../src/api/builtin.ts';
import { WEB_APPS } from '../../../../src/api/generated/web-app.ts';
import type { WebApp } from '../../../../src/api/generated/web-app.ts';
import { objectKey } from '../../../../src/api/object-key.ts';
import type { Draft } from '../../../../src/api/object.ts';
import {
  buildWebAppDeployment,
  WEB_APP_COMPONENT,
  WEB_APP_FINALIZER,
} from '../../../../src/controllers/webapp/owned-objects.ts';
import { webAppSync } from '../../../../src/controllers/webapp/controller.ts';
import { TaskError } from '../../../../src/controllers/webapp/task.ts';
import type { Hook, HookName, Task } from '../../../../src/controllers/webapp/task.ts';
import { done, requeueAfter, TerminalError } from '../../../../src/workqueue/outcome.ts';
import { NAMESPACE, SyncBench } from '../../../support/sync-bench.ts';

const AT = { namespace: NAMESPACE, name: 'shop' };

function draft(
  finalizers: string[] = [WEB_APP_FINALIZER],
  spec: Partial<WebApp['spec']> = {},
): Draft<WebApp> {
  return {
    apiVersion: 'jiajunhuang.com/v1',
    kind: 'WebApp',
    metadata: { name: 'shop', namespace: NAMESPACE, finalizers },
    spec: { version: '1.25', replicas: 2, ...spec },
  };
}

async function setUp(finalizers: string[] = [WEB_APP_FINALIZER]) {
  const bench = await SyncBench.with(WEB_APPS);
  const webapps = bench.cache<WebApp>();
  const deployments = bench.cache<Deployment>();
  const webapp = await bench.create(WEB_APPS, draft(finalizers));
  webapps.show(webapp);
  /** Implementations of hooks. @default no operation */
  const hooks = new Map<string, Hook>();
  const ran: string[] = [];
  const task = (name: string): Task => {
    const hook =
      (hookName: HookName): Hook =>
      (context) => {
        ran.push(`${name} ${hookName}`);
        return hooks.get(`${name} ${hookName}`)?.(context) ?? Promise.resolve(undefined);
      };
    return { name, create: hook('create'), delete: hook('delete') };
  };
  const sync = webAppSync({
    webapps: webapps.lister,
    deployments: deployments.lister,
    tasks: [task('first'), task('second')],
    recorder: bench.recorder,
    clock: bench.clock,
  });
  const run = () => bench.sync(sync, objectKey(NAMESPACE, 'shop'));
  const live = () => bench.get(WEB_APPS, 'shop');
  const catchUp = async () => webapps.show(await live());
  const condition = async (type: string) =>
    (await live()).status?.conditions?.find((one) => one.type === type);
  return { bench, webapp, webapps, deployments, hooks, ran, run, live, catchUp, condition };
}

describe('A sync of a WebApp', () => {
  it('adds the finalizer first, with uid and resourceVersion, to the existing ones', async () => {
    const { bench, webapp, ran, run, live } = await setUp(['test/other']);
    assert.equal((await run()).kind, 'requeueAfter');
    assert.deepEqual(ran, []);
    const [write, ...others] = bench.writes;
    assert.deepEqual(others, []);
    const { uid, resourceVersion } = webapp.metadata;
    assert.deepEqual(write?.body, {
      metadata: { uid, resourceVersion, finalizers: ['test/other', WEB_APP_FINALIZER] },
    });
    assert.equal(write?.fieldManager, WEB_APP_COMPONENT);
    assert.deepEqual((await live()).metadata.finalizers, ['test/other', WEB_APP_FINALIZER]);
  });

  it('keeps a finalizer that was added since the cache saw the object', async () => {
    const { bench, run, live } = await setUp([]);
    const body = { metadata: { finalizers: ['test/other'] } };
    await bench.client.patch(WEB_APPS, AT, { type: 'merge', body });
    await assert.rejects(run(), (error) => isApiError(error, 'conflict'));
    assert.deepEqual((await live()).metadata.finalizers, ['test/other']);
  });

  it('runs the tasks in order, records Synced, and writes the status', async () => {
    const { bench, webapp, ran, run, condition, live } = await setUp();
    assert.deepEqual(await run(), done());
    assert.deepEqual(ran, ['first create', 'second create']);
    assert.deepEqual(bench.steps, ['event Synced', 'sent Synced', 'patch webapps/status']);
    const { uid, resourceVersion } = webapp.metadata;
    assert.deepEqual(bench.writes[0]?.body.metadata, { uid, resourceVersion });
    assert.equal((await condition('Ready'))?.reason, 'TasksDone');
    assert.equal((await condition('Ready'))?.status, 'True');
    assert.equal((await condition('FirstDone'))?.status, 'True');
    assert.equal((await condition('SecondDone'))?.status, 'True');
    assert.equal((await live()).status?.observedGeneration, 1);
  });

  it('writes and records nothing if nothing changed', async () => {
    const { bench, run, catchUp } = await setUp();
    await run();
    await catchUp();
    bench.steps.length = 0;
    assert.deepEqual(await run(), done());
    assert.deepEqual(bench.steps, []);
  });

  it('stops at a task that waits, and is requeued after its delay', async () => {
    const { bench, hooks, ran, run, condition } = await setUp();
    hooks.set('first create', async () => ({ message: 'not yet', afterMs: 1500 }));
    const outcome = await run();
    assert.equal(outcome.kind, 'requeueAfter');
    assert.deepEqual(outcome, requeueAfter(1500, 'first: not yet'));
    assert.deepEqual(ran, ['first create']);
    assert.deepEqual(bench.events, []);
    assert.equal((await condition('Ready'))?.reason, 'TaskWaiting');
    assert.equal((await condition('Reconciling'))?.status, 'True');
    assert.equal((await condition('FirstDone'))?.status, 'False');
    assert.equal((await condition('FirstDone'))?.message, 'not yet');
    assert.equal((await condition('SecondDone'))?.status, 'Unknown');
  });

  it('waits for an event if the task has no delay', async () => {
    const { hooks, run } = await setUp();
    hooks.set('second create', async () => ({ message: 'not yet' }));
    assert.deepEqual(await run(), done());
  });

  it('reports each failure of a task in an event and the status, and is retried', async () => {
    const { bench, hooks, run, catchUp, condition } = await setUp();
    hooks.set('second create', async () => {
      throw new Error('no quota');
    });
    await assert.rejects(run(), /Task second failed at create: no quota/);
    assert.deepEqual(bench.steps, ['event TaskFailed', 'sent TaskFailed', 'patch webapps/status']);
    assert.deepEqual(bench.events, ['Warning TaskFailed: Task second: no quota']);
    const ready = await condition('Ready');
    assert.deepEqual([ready?.reason, ready?.message], ['TaskFailed', 'Task second: no quota']);
    assert.equal(await condition('Stalled'), undefined);
    assert.equal((await condition('FirstDone'))?.status, 'True');
    assert.equal((await condition('SecondDone'))?.reason, 'Failed');
    await catchUp();
    await assert.rejects(run(), (error) => !(error instanceof TerminalError));
    assert.equal(bench.events.length, 2);
    assert.equal(bench.writes.length, 1);
  });

  it('records a terminal failure once, stalls, and is not retried', async () => {
    const { bench, hooks, run, catchUp, condition } = await setUp();
    hooks.set('first create', async () => {
      throw new TaskError('buy one', { reason: 'NoLicence', terminal: true });
    });
    await assert.rejects(run(), TerminalError);
    assert.equal((await condition('Stalled'))?.reason, 'NoLicence');
    assert.equal((await condition('FirstDone'))?.reason, 'NoLicence');
    await catchUp();
    assert.deepEqual(await run(), done());
    assert.equal(bench.events.length, 1);
  });

  it('records an object that the server rejects once, and is retried', async () => {
    const { bench, hooks, run, catchUp } = await setUp();
    hooks.set('first create', async () => {
      throw new ApiError({ kind: 'invalid', message: 'no such port' });
    });
    await assert.rejects(run(), isCausedByInvalid);
    await catchUp();
    await assert.rejects(run(), isCausedByInvalid);
    assert.deepEqual(bench.events, ['Warning TaskFailed: Task first: no such port']);
  });

  it('retries a stalled failure that is not terminal', async () => {
    const { hooks, run, condition } = await setUp();
    hooks.set('first create', async () => {
      throw new TaskError('taken', { reason: 'ErrResourceExists', stalled: true });
    });
    await assert.rejects(run(), (error) => !(error instanceof TerminalError));
    assert.equal((await condition('Stalled'))?.reason, 'ErrResourceExists');
  });

  it('reports no failed task if the daemon stops', async () => {
    const { bench, hooks, run } = await setUp();
    hooks.set('first create', async () => {
      bench.stop.abort(new Error('stopping'));
      throw new Error('cut off');
    });
    await assert.rejects(run(), /cut off/);
    assert.deepEqual(bench.steps, []);
  });

  it('stalls on an invalid spec without running a task', async () => {
    const { bench, webapp, webapps, ran, run, catchUp, live, condition } = await setUp();
    const spec = { version: '', replicas: 2 };
    webapps.show({ ...webapp, spec });
    await assert.rejects(run(), TerminalError);
    assert.deepEqual(ran, []);
    assert.deepEqual(bench.steps, [
      'event InvalidSpec',
      'sent InvalidSpec',
      'patch webapps/status',
    ]);
    assert.equal((await condition('Stalled'))?.reason, 'InvalidSpec');
    await catchUp();
    webapps.show({ ...(await live()), spec });
    assert.deepEqual(await run(), done());
    assert.equal(bench.events.length, 1);
  });

  it('counts only the replicas of its own Deployment', async () => {
    const { bench, webapp, deployments, run, catchUp, live } = await setUp();
    const status = { observedGeneration: 1, replicas: 2, readyReplicas: 2, availableReplicas: 1 };
    const own = await bench.create(DEPLOYMENTS, buildWebAppDeployment(webapp));
    deployments.show({ ...own, status });
    await run();
    assert.equal((await live()).status?.replicas, 2);
    assert.equal((await live()).status?.availableReplicas, 1);
    const [reference] = own.metadata.ownerReferences ?? [];
    const ownerReferences = [{ ...reference!, uid: 'uid-of-another' }];
    deployments.show({ ...own, status, metadata: { ...own.metadata, ownerReferences } });
    await catchUp();
    await run();
    assert.equal((await live()).status?.replicas, 0);
  });
});

describe('A sync of a WebApp that is being deleted', () => {
  async function leaving(finalizers: string[] = [WEB_APP_FINALIZER]) {
    const fixture = await setUp(finalizers);
    await fixture.bench.client.delete(WEB_APPS, AT);
    await fixture.catchUp();
    return fixture;
  }

  it('runs the tasks in reverse order, then removes its finalizer with uid and resourceVersion', async () => {
    const { bench, ran, run, live, webapps } = await leaving([WEB_APP_FINALIZER, 'test/other']);
    const { uid, resourceVersion } = webapps.lister.get(objectKey(NAMESPACE, 'shop'))!.metadata;
    assert.deepEqual(await run(), done());
    assert.deepEqual(ran, ['second delete', 'first delete']);
    assert.deepEqual(
      bench.writes.map(({ what, body, fieldManager }) => ({ what, body, fieldManager })),
      [
        {
          what: 'patch webapps',
          body: { metadata: { uid, resourceVersion, finalizers: ['test/other'] } },
          fieldManager: WEB_APP_COMPONENT,
        },
      ],
    );
    assert.deepEqual((await live()).metadata.finalizers, ['test/other']);
    assert.deepEqual(bench.events, []);
  });

  it('keeps its finalizer while a task waits, and shows that in the status', async () => {
    const { hooks, ran, run, live, condition } = await leaving();
    hooks.set('second delete', async () => ({ message: 'still there' }));
    assert.deepEqual(await run(), done());
    assert.deepEqual(ran, ['second delete']);
    assert.deepEqual((await live()).metadata.finalizers, [WEB_APP_FINALIZER]);
    assert.equal((await condition('Ready'))?.reason, 'Deleting');
    assert.equal((await condition('Ready'))?.status, 'False');
    assert.equal((await condition('SecondDone'))?.message, 'still there');
    assert.equal((await condition('FirstDone'))?.reason, 'NotYetTakenDown');
  });

  it('keeps its finalizer if a task fails, and is retried', async () => {
    const { bench, hooks, run, live } = await leaving();
    hooks.set('first delete', async () => {
      throw new Error('no answer');
    });
    await assert.rejects(run(), /Task first failed at delete: no answer/);
    assert.deepEqual((await live()).metadata.finalizers, [WEB_APP_FINALIZER]);
    assert.equal(bench.events.length, 1);
  });

  it('is done if the WebApp is gone, and fails if it has changed', async () => {
    const gone = await leaving();
    await gone.bench.client.patch(WEB_APPS, AT, {
      type: 'merge',
      body: { metadata: { finalizers: null } },
    });
    assert.deepEqual(await gone.run(), done());
    const changed = await leaving([WEB_APP_FINALIZER, 'test/other']);
    const body = { metadata: { labels: { a: 'b' } } };
    await changed.bench.client.patch(WEB_APPS, AT, { type: 'merge', body });
    await assert.rejects(changed.run(), (error) => isApiError(error, 'conflict'));
    assert.deepEqual((await changed.live()).metadata.finalizers, [WEB_APP_FINALIZER, 'test/other']);
  });

  it('does nothing without its finalizer, or before the garbage collector has orphaned the owned objects', async () => {
    for (const finalizers of [['test/other'], [WEB_APP_FINALIZER, 'orphan']]) {
      const { bench, ran, run } = await leaving(finalizers);
      const { kind } = await run();
      assert.equal(kind, finalizers.includes(WEB_APP_FINALIZER) ? 'requeueAfter' : 'done');
      assert.deepEqual(ran, []);
      assert.deepEqual(bench.steps, []);
    }
  });

  it('does nothing for a WebApp that is not in the cache', async () => {
    const { bench, webapps, webapp, run } = await setUp();
    webapps.hide(webapp);
    assert.deepEqual(await run(), done());
    assert.deepEqual(bench.steps, []);
  });
});
