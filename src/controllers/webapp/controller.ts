import { isCausedByInvalid } from '../../api/api-error.ts';
import { DEPLOYMENTS, SERVICES } from '../../api/builtin.ts';
import type { Deployment } from '../../api/builtin.ts';
import { WEB_APPS } from '../../api/generated/web-app.ts';
import type { WebApp } from '../../api/generated/web-app.ts';
import { isControlledBy } from '../../api/metadata.ts';
import { objectKey } from '../../api/object-key.ts';
import type { DeepReadonly } from '../../api/object.ts';
import { becomesReady } from '../../api/readiness.ts';
import type { Lister } from '../../cache/lister.ts';
import { Controller } from '../../manager/controller.ts';
import type { SyncContext, SyncHandler } from '../../manager/controller-options.ts';
import { mapByName } from '../../manager/enqueue.ts';
import { Finalizer } from '../../manager/finalizer.ts';
import type { ControllerKit } from '../../manager/run-controllers.ts';
import { StatusWriter } from '../../manager/status-writer.ts';
import type { StatusEvent } from '../../manager/status-writer.ts';
import type { EventRecorder } from '../../record/event-recorder.ts';
import type { Clock } from '../../util/clock.ts';
import { messageOf } from '../../util/values.ts';
import { done, requeueAfter, TerminalError } from '../../workqueue/outcome.ts';
import type { Outcome } from '../../workqueue/outcome.ts';
import {
  WEB_APP_COMPONENT,
  deploymentName,
  WEB_APP_FINALIZER,
  webAppProblem,
  serviceName,
} from './owned-objects.ts';
import { standardTasks } from './standard-tasks.ts';
import type { TaskCaches } from './standard-tasks.ts';
import { buildWebAppStatus } from './status.ts';
import { checkTasks, runCreateHooks, runDeleteHooks, TaskError } from './task.ts';
import type { TaskProgress, Task } from './task.ts';

/** Options of {@link webAppController}. */
export interface WebAppControllerOptions {
  /**
   * Returns the tasks of a WebApp, in order.
   * @default standardTasks: Deployment, Service, rollout
   */
  readonly tasks?: ((caches: TaskCaches) => readonly Task[]) | undefined;
}

/**
 * Runs the tasks of every WebApp, and deletes what they created when the WebApp is deleted.
 *
 * @throws {RangeError} if the name of a task is invalid or used twice, or there are too many tasks
 */
export function webAppController(
  kit: ControllerKit,
  options: WebAppControllerOptions = {},
): Controller {
  const { tasks: tasksOf = standardTasks } = options;
  const webapps = kit.informers.for(WEB_APPS);
  const deployments = kit.informers.for(DEPLOYMENTS);
  const services = kit.informers.for(SERVICES);
  const tasks = tasksOf({ deployments: deployments.lister, services: services.lister });
  checkTasks(tasks);
  const sync = webAppSync({
    webapps: webapps.lister,
    deployments: deployments.lister,
    tasks,
    recorder: kit.events.recorder(WEB_APP_COMPONENT),
    clock: kit.clock,
  });
  return new Controller(kit, { name: 'webapp', kind: WEB_APPS.kind, sync })
    .for(webapps)
    .owns(deployments, WEB_APPS, {
      orNamed: mapByName(webapps, 'deployment', deploymentName),
    })
    .owns(services, WEB_APPS, { orNamed: mapByName(webapps, 'service', serviceName) });
}

/** Dependencies of `webAppSync`. */
export interface WebAppSyncDeps {
  readonly webapps: Lister<WebApp>;
  readonly deployments: Pick<Lister<Deployment>, 'get'>;
  readonly tasks: readonly Task[];
  readonly recorder: EventRecorder;
  readonly clock: Clock;
}

/**
 * Runs the create hooks of the tasks of a WebApp, or the delete hooks in reverse order if the WebApp is
 * being deleted, and writes the status.
 *
 * Every sync starts at the first task: hooks that are done have nothing to do.
 */
export function webAppSync(deps: WebAppSyncDeps): SyncHandler {
  const { webapps, deployments, tasks, recorder, clock } = deps;
  const statuses = new StatusWriter(WEB_APPS, WEB_APP_COMPONENT, {
    events: { recorder: () => recorder },
  });
  const finalizer = new Finalizer(WEB_APPS, WEB_APP_FINALIZER, WEB_APP_COMPONENT);

  return async (key, context) => {
    const webapp = webapps.get(key);
    if (!webapp) return done();
    return finalizer.sync(webapp, context, {
      apply: async () => report(webapp, context, await runTasks(tasks, webapp, context)),
      cleanUp: async () => {
        const progress = await runDeleteHooks(tasks, { ...context, webapp });
        if (progress.kind !== 'done') return report(webapp, context, progress);
        context.log.v(2).info('Ran all delete hooks of the WebApp');
        return undefined;
      },
    });
  };

  async function report(
    webapp: DeepReadonly<WebApp>,
    context: SyncContext,
    progress: TaskProgress,
  ): Promise<Outcome> {
    const named = deployments.get(objectKey(webapp.metadata.namespace, deploymentName(webapp)));
    const deployment = named && isControlledBy(named, webapp) ? named : undefined;
    const status = buildWebAppStatus(webapp, { tasks, progress, deployment, now: clock.now() });
    await statuses.report(context, {
      object: webapp,
      status,
      event: eventOf(progress, becomesReady(webapp, status)),
      error: errorOf(progress),
    });
    if (progress.kind !== 'waiting' || progress.wait.afterMs === undefined) return done();
    const { task, wait } = progress;
    return requeueAfter(progress.wait.afterMs, `${task}: ${wait.message}`);
  }
}

async function runTasks(
  tasks: readonly Task[],
  webapp: DeepReadonly<WebApp>,
  context: SyncContext,
): Promise<TaskProgress> {
  const problem = webAppProblem(webapp);
  return problem === undefined
    ? runCreateHooks(tasks, { ...context, webapp })
    : { kind: 'invalid', problem };
}

function eventOf(progress: TaskProgress, isNewlyReady: boolean): StatusEvent | undefined {
  switch (progress.kind) {
    case 'invalid':
      return { type: 'Warning', reason: 'InvalidSpec', message: progress.problem };
    case 'failed': {
      const { task, cause } = progress;
      const message = `Task ${task}: ${messageOf(cause)}`;
      // A retry after a terminal error or a rejected object fails in the same way.
      const repeats = !isTerminal(cause) && !isCausedByInvalid(cause);
      return { type: 'Warning', reason: 'TaskFailed', message, repeats };
    }
    case 'done':
    case 'waiting':
      if (!isNewlyReady) return undefined;
      return { type: 'Normal', reason: 'Synced', message: 'WebApp synced successfully' };
  }
}

function errorOf(progress: TaskProgress): Error | undefined {
  switch (progress.kind) {
    case 'invalid':
      return new TerminalError(progress.problem);
    case 'failed': {
      const { task, hook, cause } = progress;
      const message = `Task ${task} failed at ${hook}: ${messageOf(cause)}`;
      return isTerminal(cause)
        ? new TerminalError(message, { cause })
        : new Error(message, { cause });
    }
    case 'done':
    case 'waiting':
      return undefined;
  }
}

function isTerminal(cause: unknown): boolean {
  return cause instanceof TaskError && cause.terminal;
}
