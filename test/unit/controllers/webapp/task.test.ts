import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { WebApp } from '../../../../src/api/generated/web-app.ts';
import type { Client } from '../../../../src/client/client.ts';
import {
  checkTasks,
  conditionType,
  HOOKS,
  runCreateHooks,
  runDeleteHooks,
  TaskError,
} from '../../../../src/controllers/webapp/task.ts';
import type { TaskProgress, Task } from '../../../../src/controllers/webapp/task.ts';
import { buildWebAppStatus } from '../../../../src/controllers/webapp/status.ts';
import { recordingLogger } from '../../../support/recording-logger.ts';

const WEB_APP: WebApp = {
  apiVersion: 'jiajunhuang.com/v1',
  kind: 'WebApp',
  metadata: {
    name: 'web',
    namespace: 'shop',
    uid: 'u',
    resourceVersion: '1',
    creationTimestamp: '2026-01-01T00:00:00Z',
    generation: 2,
  },
  spec: { version: '1', replicas: 2 },
};

const context = {
  webapp: WEB_APP,
  client: {} as Client,
  signal: new AbortController().signal,
  log: recordingLogger().log,
};

function tasks(ran: string[], ...names: string[]): Task[] {
  const hooksOf = (name: string) =>
    HOOKS.map((hook) => [hook, async () => void ran.push(`${name} ${hook}`)] as const);
  return names.map((name) => Object.assign({ name }, Object.fromEntries(hooksOf(name))));
}

describe('Hooks', () => {
  it('runs all hooks of a task before the next task', async () => {
    const ran: string[] = [];
    assert.deepEqual(await runCreateHooks(tasks(ran, 'a', 'b'), context), { kind: 'done' });
    assert.deepEqual(ran, [
      'a preCreate',
      'a create',
      'a postCreate',
      'b preCreate',
      'b create',
      'b postCreate',
    ]);
  });

  it('runs delete hooks from the last task to the first', async () => {
    const ran: string[] = [];
    assert.deepEqual(await runDeleteHooks(tasks(ran, 'a', 'b'), context), { kind: 'done' });
    assert.deepEqual(ran, [
      'b preDelete',
      'b delete',
      'b postDelete',
      'a preDelete',
      'a delete',
      'a postDelete',
    ]);
  });

  it('stops at the first hook that waits, and names task and reason', async () => {
    const ran: string[] = [];
    const [a, b] = tasks(ran, 'a', 'b');
    const wait = { message: 'soon', afterMs: 10 };
    const waiting: Task = { ...a!, create: async () => wait };
    assert.deepEqual(await runCreateHooks([waiting, b!], context), {
      kind: 'waiting',
      task: 'a',
      wait,
    });
    assert.deepEqual(ran, ['a preCreate']);
  });

  it('stops at the first hook that fails, and names task, hook and cause', async () => {
    const ran: string[] = [];
    const [a, b] = tasks(ran, 'a', 'b');
    const cause = new Error('no');
    const failing: Task = { ...a!, postCreate: () => Promise.reject(cause) };
    const progress = await runCreateHooks([failing, b!], context);
    assert.deepEqual(progress, { kind: 'failed', task: 'a', hook: 'postCreate', cause });
    assert.deepEqual(ran, ['a preCreate', 'a create']);
  });

  it('rejects invalid names, names that are used twice, and too many tasks', () => {
    const named =
      (...names: string[]) =>
      () =>
        checkTasks(names.map((name) => ({ name })));
    for (const name of ['', 'A', 'a_b', '-a', 'a-', 'a--b', '1a', 'a'.repeat(64)]) {
      assert.throws(named(name), RangeError, name);
    }
    assert.throws(named('a', 'a'), /Two tasks have the name "a"/);
    assert.throws(named('a-b', 'ab', 'a-b'), RangeError);
    const many = Array.from({ length: 61 }, (_, at) => `t${at}`);
    assert.throws(named(...many), RangeError);
    named(...many.slice(1))();
    named('a'.repeat(63), 'db-migration', 'a1-2b')();
  });

  it('rejects two tasks whose names lead to the same condition type', () => {
    assert.equal(conditionType({ name: 'a-1' }), 'A1Done');
    assert.equal(conditionType({ name: 'a1' }), 'A1Done');
    assert.throws(() => checkTasks([{ name: 'a-1' }, { name: 'a1' }]), /same condition/);
    assert.equal(conditionType({ name: 'db-migration' }), 'DbMigrationDone');
  });
});

describe('The status of a WebApp', () => {
  const list = [{ name: 'a' }, { name: 'b' }, { name: 'c' }];
  const conditionsAt = (progress: TaskProgress, more: Partial<WebApp> = {}) => {
    const webapp = { ...WEB_APP, ...more };
    const { conditions = [], ...others } = buildWebAppStatus(webapp, {
      tasks: list,
      progress,
      deployment: undefined,
      now: 0,
    });
    const shown = conditions.map(({ type, status, reason }) => `${type} ${status} ${reason}`);
    const phases = new Set(conditions.map((condition) => (condition as { phase?: string }).phase));
    return { shown, phases: [...phases], conditions, others };
  };
  const leaving = { metadata: { ...WEB_APP.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };

  it('has a condition for each task: done, waiting, not yet run', () => {
    const progress = { kind: 'waiting', task: 'b', wait: { message: 'soon' } } as const;
    const { shown, phases } = conditionsAt(progress);
    assert.deepEqual(shown, [
      'Ready False TaskWaiting',
      'Reconciling True Progressing',
      'ADone True Done',
      'BDone False Waiting',
      'CDone Unknown NotYetRun',
    ]);
    assert.deepEqual(phases, ['Progressing']);
  });

  it('is ready when all tasks are done', () => {
    const { shown, phases, others } = conditionsAt({ kind: 'done' });
    assert.deepEqual(shown, [
      'Ready True TasksDone',
      'ADone True Done',
      'BDone True Done',
      'CDone True Done',
    ]);
    assert.deepEqual(phases, ['Available']);
    assert.equal(others.observedGeneration, 2);
  });

  it('shows a failure with the reason of its TaskError, and Stalled if it is stalled', () => {
    const failed = (cause: unknown): TaskProgress => ({
      kind: 'failed',
      task: 'a',
      hook: 'create',
      cause,
    });
    const plain = conditionsAt(failed(new Error('no')));
    assert.deepEqual(plain.shown.slice(0, 3), [
      'Ready False TaskFailed',
      'Reconciling True Progressing',
      'ADone False Failed',
    ]);
    assert.equal(plain.conditions[2]?.message, 'create: no');
    const known = conditionsAt(failed(new TaskError('no', { reason: 'NoQuota' })));
    assert.equal(known.shown[0], 'Ready False NoQuota');
    assert.equal(known.shown[2], 'ADone False NoQuota');
    const stalled = conditionsAt(failed(new TaskError('no', { reason: 'NoQuota', stalled: true })));
    assert.deepEqual(stalled.shown.slice(0, 2), ['Ready False NoQuota', 'Stalled True NoQuota']);
    assert.deepEqual(stalled.phases, ['Failed']);
  });

  it('shows a deletion from the last task to the first', () => {
    const progress = { kind: 'waiting', task: 'b', wait: { message: 'soon' } } as const;
    const { shown, phases } = conditionsAt(progress, leaving);
    assert.deepEqual(shown, [
      'Ready False Deleting',
      'Reconciling True Progressing',
      'CDone False TakenDown',
      'BDone False Waiting',
      'ADone True NotYetTakenDown',
    ]);
    assert.deepEqual(phases, ['Deleting']);
    assert.equal(conditionsAt({ kind: 'done' }, leaving).shown[0], 'Ready False Deleting');
  });

  it('removes conditions of tasks that no longer exist, and keeps those of other writers', () => {
    const base = { status: 'True', reason: 'X', message: '', lastTransitionTime: '', phase: '' };
    const conditions = [
      { ...base, type: 'OldDone' },
      { ...base, type: 'Audited' },
    ];
    const status = { conditions } as unknown as NonNullable<WebApp['status']>;
    const { shown } = conditionsAt({ kind: 'done' }, { status });
    assert.ok(shown.includes('Audited True X'));
    assert.ok(!shown.some((one) => one.startsWith('OldDone')));
  });

  it('keeps the conditions of tasks if the spec is invalid', () => {
    const { shown } = conditionsAt({ kind: 'invalid', problem: 'bad' });
    assert.deepEqual(shown, ['Ready False InvalidSpec', 'Stalled True InvalidSpec']);
  });
});
