import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { isApiError } from '../../src/api/api-error.ts';
import { CONFIG_MAPS, DEPLOYMENTS, PODS, SERVICES } from '../../src/api/builtin.ts';
import type { Condition } from '../../src/api/conditions.ts';
import { WEB_APPS } from '../../src/api/generated/web-app.ts';
import { webAppController } from '../../src/controllers/webapp/controller.ts';
import { standardTasks } from '../../src/controllers/webapp/standard-tasks.ts';
import type { TaskCaches } from '../../src/controllers/webapp/standard-tasks.ts';
import { checkTasks, HOOKS, TaskError } from '../../src/controllers/webapp/task.ts';
import type { Hook, Task } from '../../src/controllers/webapp/task.ts';
import '../../hack/import-from-source.ts';
import { delayWatches } from '../support/disruptions.ts';
import { Simulation } from '../support/simulation.ts';

// Imported after the package name was mapped to the source.
const { webAppWithPage } = await import('../../examples/02-webapp/page-task.ts');

const AT = { namespace: 'default', name: 'web' };
const MINUTE_MS = 60_000;

describe('A WebApp controller with custom tasks', () => {
  let simulation: Simulation;
  /** Called hooks as `name.hook`, without consecutive repetitions. */
  let ran: string[];

  beforeEach(async () => {
    simulation = new Simulation();
    simulation.startCluster();
    ran = [];
    await simulation.installCrd(WEB_APPS, DEPLOYMENTS, SERVICES);
  });
  afterEach(() => simulation.end());

  const start = (tasksOf: (caches: TaskCaches) => readonly Task[]) => {
    return simulation.startControllers((kit) => [webAppController(kit, { tasks: tasksOf })]);
  };
  /** Returns a task with all six hooks; `instead` replaces some of them. */
  const recordingTask = (name: string, instead: Partial<Record<string, Hook>> = {}): Task => {
    const hook = (called: string): Hook => {
      return (context) => {
        const step = `${name}.${called}`;
        if (!ran.includes(step)) ran.push(step);
        return instead[called]?.(context) ?? Promise.resolve(undefined);
      };
    };
    return { name, ...Object.fromEntries(HOOKS.map((called) => [called, hook(called)])) };
  };
  const apply = (spec: object = {}) =>
    simulation.client.create(WEB_APPS, {
      apiVersion: 'jiajunhuang.com/v1',
      kind: 'WebApp',
      metadata: AT,
      spec: { version: '1.27', replicas: 1, ...spec },
    });
  const webapp = () => simulation.client.get(WEB_APPS, AT);
  const conditions = async (): Promise<Record<string, string>> =>
    Object.fromEntries(
      ((await webapp()).status?.conditions ?? []).map(({ type, status, reason }: Condition) => [
        type,
        `${status} ${reason}`,
      ]),
    );
  const isGone = async () => {
    try {
      await webapp();
      return false;
    } catch (error) {
      if (isApiError(error, 'notFound')) return true;
      throw error;
    }
  };

  it('calls the hooks in order, and in reverse order when the WebApp is deleted', async () => {
    start(() => [recordingTask('database'), recordingTask('cache-warm-up')]);
    await apply();
    await simulation.settle();
    assert.deepEqual(ran, [
      'database.preCreate',
      'database.create',
      'database.postCreate',
      'cache-warm-up.preCreate',
      'cache-warm-up.create',
      'cache-warm-up.postCreate',
    ]);
    assert.deepEqual(await conditions(), {
      Ready: 'True TasksDone',
      DatabaseDone: 'True Done',
      CacheWarmUpDone: 'True Done',
    });
    ran = [];
    await simulation.client.delete(WEB_APPS, AT);
    await simulation.until('gone', isGone);
    assert.deepEqual(ran, [
      'cache-warm-up.preDelete',
      'cache-warm-up.delete',
      'cache-warm-up.postDelete',
      'database.preDelete',
      'database.delete',
      'database.postDelete',
    ]);
    assert.deepEqual(simulation.errors(), []);
  });

  it('stops the pipeline at a failed hook, reports the failure, and retries until it succeeds', async () => {
    let failures = 3;
    const flaky: Hook = () =>
      failures-- > 0
        ? Promise.reject(new Error('the registry is down'))
        : Promise.resolve(undefined);
    start((caches) => [
      recordingTask('before'),
      recordingTask('register', { postCreate: flaky }),
      ...standardTasks(caches),
    ]);
    await apply();
    await simulation.pass(8);
    assert.deepEqual(await conditions(), {
      Ready: 'False TaskFailed',
      Reconciling: 'True Progressing',
      BeforeDone: 'True Done',
      RegisterDone: 'False Failed',
      DeploymentDone: 'Unknown NotYetRun',
      ServiceDone: 'Unknown NotYetRun',
      RolloutDone: 'Unknown NotYetRun',
    });
    const failed = (await webapp()).status?.conditions?.find(({ type }) => type === 'RegisterDone');
    assert.equal(failed?.message, 'postCreate: the registry is down');
    await simulation.until('ready', async () => (await conditions())['Ready'] === 'True TasksDone');
    assert.equal(simulation.errors().length, 3);
    await simulation.settle();
    assert.deepEqual(await simulation.events('webapp-controller'), [
      'Synced WebApp synced successfully',
      'TaskFailed Task register: the registry is down',
    ]);
  });

  it('reports a terminal error once, until the user corrects it', async () => {
    let isBlessed = false;
    const bless: Hook = () =>
      isBlessed
        ? Promise.resolve(undefined)
        : Promise.reject(new TaskError('ask the owner', { reason: 'NotBlessed', terminal: true }));
    start(() => [recordingTask('blessing', { create: bless })]);
    await apply();
    await simulation.pass(60 * MINUTE_MS);
    assert.equal(simulation.errors().length, 1);
    assert.deepEqual(await conditions(), {
      Ready: 'False NotBlessed',
      Stalled: 'True NotBlessed',
      BlessingDone: 'False NotBlessed',
    });
    assert.equal((await webapp()).status?.conditions?.[0]?.phase, 'Failed');
    isBlessed = true;
    const body = { metadata: { annotations: { blessed: 'yes' } } };
    await simulation.client.patch(WEB_APPS, AT, { type: 'merge', body });
    await simulation.until('ready', async () => (await conditions())['Ready'] === 'True TasksDone');
  });

  it('requeues a waiting hook after its delay, without delaying other WebApps', async () => {
    const fromMs = simulation.elapsedMs();
    const slow: Hook = ({ webapp: { metadata } }) =>
      Promise.resolve(
        metadata.name === 'web' && simulation.elapsedMs() - fromMs < 10 * MINUTE_MS
          ? { message: 'the certificate is being issued', afterMs: MINUTE_MS }
          : undefined,
      );
    start(() => [recordingTask('certificate', { preCreate: slow })]);
    await apply();
    await simulation.client.create(WEB_APPS, {
      apiVersion: 'jiajunhuang.com/v1',
      kind: 'WebApp',
      metadata: { ...AT, name: 'other' },
      spec: { version: '1.27', replicas: 1 },
    });
    await simulation.pass(2000);
    assert.equal((await conditions())['CertificateDone'], 'False Waiting');
    assert.equal((await webapp()).status?.conditions?.[0]?.phase, 'Progressing');
    const other = await simulation.client.get(WEB_APPS, { ...AT, name: 'other' });
    assert.equal(other.status?.conditions?.[0]?.status, 'True');
    await simulation.pass(10 * MINUTE_MS);
    assert.equal((await conditions())['Ready'], 'True TasksDone');
    assert.deepEqual(simulation.errors(), []);
  });

  it('removes the condition of a task that is removed from the list', async () => {
    const stop = start(() => [recordingTask('old'), recordingTask('kept')]);
    await apply();
    await simulation.settle();
    await stop();
    start(() => [recordingTask('kept')]);
    await simulation.settle();
    assert.deepEqual(Object.keys(await conditions()), ['Ready', 'KeptDone']);
  });

  it('rejects lists of tasks that form no pipeline at construction', () => {
    const assertInvalid = (...names: string[]) => {
      const tasks = names.map((name) => ({ name }));
      assert.throws(() => checkTasks(tasks), RangeError, names.slice(0, 3).join());
    };
    assertInvalid('two', 'two');
    assertInvalid('a-1b', 'a1b');
    assertInvalid('Big');
    assertInvalid('');
    assertInvalid('x'.repeat(64));
    assertInvalid(...Array.from({ length: 61 }, (_, number) => `task-${number}`));
    assert.throws(() => new TaskError('x', { reason: 'no reason' }), RangeError);
  });

  it('records Synced when a change is rolled out, not before', async () => {
    simulation.startDaemonBehind(delayWatches(simulation, 500), { controllers: ['webapp'] });
    await apply();
    await simulation.until('ready', async () => (await conditions())['Ready'] === 'True TasksDone');
    await simulation.client.patch(WEB_APPS, AT, {
      type: 'merge',
      body: { spec: { version: '1.28' } },
    });
    await simulation.until(
      'ready again',
      async () => {
        const { status, metadata } = await webapp();
        const ready = status?.conditions?.find(({ type }) => type === 'Ready');
        return ready?.status === 'True' && ready.observedGeneration === metadata.generation;
      },
      { stepMs: 1 },
    );
    const images = (await simulation.client.list(PODS, { namespace: 'default' })).items
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .map(({ spec }) => spec?.containers[0]?.image);
    assert.deepEqual(images, ['nginx:1.28']);
  });

  it('the example task creates its page first, re-creates it, and deletes it', async () => {
    simulation.startControllers((kit) => [webAppWithPage(kit)]);
    await apply();
    const page = () => simulation.client.get(CONFIG_MAPS, { ...AT, name: 'web-page' });
    await simulation.until('ready', async () => (await conditions())['Ready'] === 'True TasksDone');
    const { metadata } = await page();
    assert.equal(metadata.ownerReferences?.[0]?.name, AT.name);
    const { PageDone, WordDone } = await conditions();
    assert.deepEqual([PageDone, WordDone], ['True Done', 'True Done']);
    await simulation.client.delete(CONFIG_MAPS, metadata);
    await simulation.settle();
    assert.notEqual((await page()).metadata.uid, metadata.uid);
    await simulation.client.delete(WEB_APPS, AT);
    await simulation.until('gone', isGone);
    const { items } = await simulation.client.list(CONFIG_MAPS, { namespace: 'default' });
    assert.deepEqual(items, []);
    assert.deepEqual(simulation.errors(), []);
  });

  it('keeps owned objects when the WebApp is deleted with orphan propagation', async () => {
    start(standardTasks);
    await apply();
    await simulation.until('ready', async () => (await conditions())['Ready'] === 'True TasksDone');
    await simulation.client.delete(WEB_APPS, AT, { propagationPolicy: 'Orphan' });
    await simulation.until('gone', isGone);
    await simulation.settle();
    const { metadata } = await simulation.client.get(DEPLOYMENTS, AT);
    assert.deepEqual(
      [metadata.ownerReferences, metadata.deletionTimestamp],
      [undefined, undefined],
    );
    await simulation.client.get(SERVICES, AT);
  });
});
